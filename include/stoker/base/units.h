// Sizes and durations as people write them; one function each, used by every flag, report and Python argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/base/status.h"

namespace stoker {

// "4GB" = 4·10⁹, "4GiB" = 2³², "512" = 512 bytes, "1.5 MB" = 1,500,000. Case does not matter, and "4G" is "4GB".
// Errors: kBadInput (what was read, and an example).
Result<std::uint64_t> parse_size(std::string_view text);

// "40m", "1h30m", "90s", "250ms", "2d", "1.5h"; a bare number is seconds. Errors: kBadInput.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// Three significant digits in powers of 1000: 1234567 → "1.23 MB".
std::string format_size(std::uint64_t bytes);
// "850 µs", "12.3 ms", "4.25 s", "3 min 5 s", "2 h 10 min".
std::string format_duration(std::chrono::nanoseconds duration);
// 1854 → "1,854".
std::string format_count(std::uint64_t count);

}  // namespace stoker
