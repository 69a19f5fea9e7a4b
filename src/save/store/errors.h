// The two words that most of this room's errors begin with.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "stoker/base/status.h"
#include "stoker/base/text.h"

namespace stoker::save {

inline Error corrupt(std::string message) { return {ErrorCode::kCorrupt, std::move(message)}; }

inline std::string shown(const std::filesystem::path& path) { return printable(path.native()); }

}  // namespace stoker::save
