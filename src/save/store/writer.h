// Writes one staged checkpoint: a plain function over the FileSystem seam, whole or absent whatever happens.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "save/store/manifest.h"
#include "stoker/base/files.h"

namespace stoker::save {

// A part that an earlier checkpoint has and that this one uses as well.
struct SharedPart {
  std::filesystem::path from;  // the file under its earlier name
  std::size_t part = 0;        // in the manifest
};

// A new part that is not staged: the tensors' own memory, which stands still until the job is done.
struct Unstaged {
  struct Source {
    std::size_t tensor = 0;  // in the manifest
    std::span<const std::byte> bytes;
  };
  std::string header;
  std::vector<Source> sources;  // in the file's order
  std::span<std::byte> buffer;  // page-aligned, whole pages: all that is copied at a time
};

// What is written. The manifest's tensors of the new part (its last) have no hash yet; the writer sets them.
struct WriteJob {
  std::filesystem::path dir;  // the store's
  std::string name;           // of the checkpoint's own directory
  Manifest manifest;
  std::string state;                // JSON text, parsed into the manifest by the writing thread
  std::span<const std::byte> part;  // the whole new file, header and tensors; empty: no new part, or:
  std::optional<Unstaged> unstaged;
  std::vector<SharedPart> shared;
};

// Order: hashes; the parts, synced; the manifest, synced; the directory, synced; rename; the parent, synced.
// Errors: kNoSpace, kUnsupported (no hard links), kIo; then nothing is left of it.
Status write_checkpoint(FileSystem& files, WriteJob& job);

// Renames a checkpoint away and then removes it, so that it is never half there. Errors: kIo.
Status remove_checkpoint(FileSystem& files, const std::filesystem::path& checkpoint);

// Removes what a crash left. Errors: kIo.
Status remove_leftovers(FileSystem& files, const std::filesystem::path& dir);

}  // namespace stoker::save
