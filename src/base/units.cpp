#include "stoker/base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "stoker/base/text.h"

namespace stoker {
namespace {

struct Number {
  double value = 0;
  std::string_view rest;
};

// A plain decimal number at the start of `text`; no sign, exponent, "inf" or "nan".
std::optional<Number> leading_number(std::string_view text) {
  const std::size_t length = std::min(text.find_first_not_of("0123456789."), text.size());
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + length, value, std::chars_format::fixed);
  if (length == 0 || error != std::errc() || end != text.data() + length) return std::nullopt;
  return Number{value, trim(text.substr(length))};
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// 0 for an unknown unit.
double size_factor(const std::string& unit) {
  if (unit.empty() || unit == "b" || unit == "byte" || unit == "bytes") return 1;
  constexpr std::string_view kPrefixes = "kmgtp";
  const std::size_t power = kPrefixes.find(unit[0]);
  if (power == std::string_view::npos) return 0;
  const std::string rest = unit.substr(1);
  if (rest.empty() || rest == "b") return std::pow(1000.0, static_cast<double>(power + 1));
  if (rest == "i" || rest == "ib") return std::pow(1024.0, static_cast<double>(power + 1));
  return 0;
}

// Nanoseconds in one `unit`; 0 for an unknown one.
double duration_factor(const std::string& unit) {
  if (unit == "ns") return 1;
  if (unit == "us" || unit == "µs") return 1e3;
  if (unit == "ms") return 1e6;
  if (unit.empty() || unit == "s" || unit == "sec") return 1e9;
  if (unit == "m" || unit == "min") return 60e9;
  if (unit == "h") return 3600e9;
  if (unit == "d") return 86400e9;
  return 0;
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  const Error bad{ErrorCode::kBadInput, fmt::format("'{}' is not a size", printable(text)),
                  "write a number and a unit, such as 4GB (4·10⁹ bytes) or 4GiB (2³² bytes)"};
  const auto number = leading_number(trim(text));
  if (!number) return bad;
  const double factor = size_factor(lower(number->rest));
  const double bytes = number->value * factor;
  if (factor == 0 || bytes >= std::ldexp(1.0, 63)) return bad;
  return static_cast<std::uint64_t>(std::llround(bytes));
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const Error bad{ErrorCode::kBadInput, fmt::format("'{}' is not a duration", printable(text)),
                  "write a number and a unit, such as 40m, 1h30m, 90s or 250ms"};
  double total = 0;
  std::string_view rest = trim(text);
  if (rest.empty()) return bad;
  while (!rest.empty()) {
    const auto number = leading_number(rest);
    if (!number) return bad;
    const std::size_t unit_length = std::min(number->rest.find_first_of("0123456789. "), number->rest.size());
    const double factor = duration_factor(lower(number->rest.substr(0, unit_length)));
    if (factor == 0) return bad;
    total += number->value * factor;
    rest = trim(number->rest.substr(unit_length));
  }
  if (total >= std::ldexp(1.0, 63)) return bad;
  return std::chrono::nanoseconds(std::llround(total));
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

namespace {

std::string format_nanoseconds(double ns) {
  const auto three_digits = [](double value, const char* unit) {
    return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit);
  };
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 999.5e3) return three_digits(ns / 1e3, "µs");
  if (ns < 999.5e6) return three_digits(ns / 1e6, "ms");
  if (ns < 99.95e9) return three_digits(ns / 1e9, "s");
  const auto seconds = std::llround(ns / 1e9);
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  const auto minutes = std::llround(ns / 60e9);
  return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

}  // namespace

std::string format_duration(std::chrono::nanoseconds duration) {
  // The shortest duration of all has no positive one, but its double has.
  const double ns = std::abs(static_cast<double>(duration.count()));
  if (duration.count() < 0) return "-" + format_nanoseconds(ns);
  return format_nanoseconds(ns);
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

}  // namespace stoker
