// A forgiving JSON scanner over a window of text: it finds where values end, and reads the few that are wanted.
//
// Forgiving: control characters and unknown escapes inside strings, NaN and Infinity as numbers. A function that
// reaches the end of the window says kNeedMore; the caller brings more text and asks again from the value's start.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker::watch::kineto {

enum class Scan { kOk, kNeedMore, kBad };

class Scanner {
 public:
  Scanner(const char* at, const char* end) : at_(at), end_(end) {}

  const char* at() const { return at_; }
  // The next byte that is no space, not consumed.
  Scan peek(char& next);
  // Consumes `wanted`, after spaces.
  Scan expect(char wanted);
  // The bytes between the quotes, escapes as they stand.
  Scan string(std::string_view& raw);
  // A number as its text; also a bare word such as NaN, which the readers below refuse.
  Scan number(std::string_view& text);
  // Over one value of any kind.
  Scan skip_value();

 private:
  Scan skip_open(int depth);
  const char* at_;
  const char* end_;
};

// Microseconds with decimals to nanoseconds, rounded half away from zero; false for what is no number or out of range
// (|x| > 4·10¹⁸ ns).
bool parse_us(std::string_view text, std::int64_t& ns);
// A whole number; a fraction is cut off. False for what is no number or out of range.
bool parse_integer(std::string_view text, std::int64_t& value);
// Escapes resolved; unknown ones are left as they stand.
std::string unescape(std::string_view raw);

}  // namespace stoker::watch::kineto
