// What lies in the store's directory, and which checkpoints the rules let go of.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "save/store/manifest.h"
#include "stoker/base/files.h"
#include "stoker/save/store.h"

namespace stoker::save {

// Unfinished work in the store's directory starts with this; whoever holds the lock may remove it.
constexpr std::string_view kTemporaryPrefix = ".tmp-";

// A writer that rotates faster than this many looks at its directory is none that trains a model.
inline constexpr int kMaxLooks = 1000;

// The manifest in a checkpoint's directory. Errors name the file: kNotFound, kCorrupt, kUnsupported, kIo.
Result<Manifest> read_manifest(FileSystem& files, const std::filesystem::path& checkpoint);

CheckpointInfo describe(const Manifest& manifest, const std::filesystem::path& checkpoint);

// Reads all manifests of `dir`. Errors: kIo.
Result<Listing> scan(FileSystem& files, const std::filesystem::path& dir);

// What `look` at a checkpoint fails with, or nothing: it is well, or it was renamed away meanwhile, which is no damage.
// A failure counts when the directory is still there and a second look fails in the same words: between the two, a step
// may have been removed, or moved aside and saved again.
std::optional<Error> lasting_failure(FileSystem& files, const std::filesystem::path& checkpoint,
                                     const std::function<Status()>& look);

// The checkpoint that wins by `keep`'s metric, or nothing.
std::optional<std::size_t> best_of(const std::vector<CheckpointInfo>& checkpoints, const Keep& keep);

// The directories that no rule of `keep` wants. `checkpoints` in a Listing's order; `since`: what keep.every counts
// from.
std::vector<std::filesystem::path> expired(const std::vector<CheckpointInfo>& checkpoints, const Keep& keep,
                                           Nanoseconds since);

void sort_by_step(std::vector<CheckpointInfo>& checkpoints);

}  // namespace stoker::save
