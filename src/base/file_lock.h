// The real FileSystem's lock(): flock, kept out of forked children.
#pragma once

#include <filesystem>
#include <memory>

#include "stoker/base/files.h"

namespace stoker {

Result<std::unique_ptr<LockedFile>> lock_file(const std::filesystem::path& path);

}  // namespace stoker
