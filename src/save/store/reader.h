// Reads checkpoints back and checks every byte on the way.
#pragma once

#include <filesystem>
#include <vector>

#include "save/store/manifest.h"
#include "stoker/base/files.h"
#include "stoker/save/store.h"

namespace stoker::save {

// The tensors of `manifest`, whose directory is `checkpoint`, each in memory of its own and equal to its stored hash.
// Memory is taken only after the file is seen to hold that much.
// Errors: kCorrupt naming tensor, file, offset, stored and computed hash; kIo.
Result<std::vector<LoadedTensor>> read_tensors(FileSystem& files, const std::filesystem::path& checkpoint,
                                               const Manifest& manifest, int threads);

// The same checks, through a small buffer.
Status check_tensors(FileSystem& files, const std::filesystem::path& checkpoint, const Manifest& manifest, int threads);

}  // namespace stoker::save
