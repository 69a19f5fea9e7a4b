// Reading the small text files of /proc and /sys under a Root. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "stoker/machine/machine.h"

namespace stoker::machine {

// The file's text, trimmed; nothing when it cannot be read.
std::optional<std::string> read_text(const std::filesystem::path& path);

std::optional<std::uint64_t> parse_number(std::string_view text);

// "0-3,8" → {0, 1, 2, 3, 8}; empty when `text` is no such list.
std::set<int> parse_cpu_list(std::string_view text);

// The rest of the first line of `text` that starts with `key`, trimmed: value_of(status, "Cpus_allowed_list:").
std::optional<std::string_view> value_of(std::string_view text, std::string_view key);

}  // namespace stoker::machine
