#include "watch/kineto/scanner.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace stoker::watch::kineto {
namespace {

constexpr std::int64_t kMostNs = 4'000'000'000'000'000'000;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool ends_number(char c) { return c == ',' || c == '}' || c == ']' || is_space(c); }

bool from_double(std::string_view text, double scale, std::int64_t& value) {
  double parsed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  parsed *= scale;
  if (!std::isfinite(parsed) || std::fabs(parsed) > static_cast<double>(kMostNs)) return false;
  value = static_cast<std::int64_t>(std::round(parsed));
  return true;
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

bool hex4(std::string_view text, std::uint32_t& code) {
  if (text.size() < 4) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, code, 16);
  return error == std::errc() && end == text.data() + 4;
}

// The escape of four hex digits whose 'u' is `raw[i]`, with its second half where it has one; 0: none that can be read.
std::size_t unicode_escape(std::string_view raw, std::size_t i, std::string& out) {
  std::uint32_t code = 0;
  if (!hex4(raw.substr(i + 1), code)) return 0;
  std::uint32_t low = 0;
  const bool high = code >= 0xD800 && code < 0xDC00;
  if (high && raw.substr(i + 5, 2) == "\\u" && hex4(raw.substr(i + 7), low) && low >= 0xDC00 && low < 0xE000) {
    append_utf8(out, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00));
    return 11;
  }
  append_utf8(out, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
  return 5;
}

}  // namespace

Scan Scanner::peek(char& next) {
  while (at_ != end_ && is_space(*at_)) ++at_;
  if (at_ == end_) return Scan::kNeedMore;
  next = *at_;
  return Scan::kOk;
}

Scan Scanner::expect(char wanted) {
  char next = 0;
  if (const Scan scan = peek(next); scan != Scan::kOk) return scan;
  if (next != wanted) return Scan::kBad;
  ++at_;
  return Scan::kOk;
}

Scan Scanner::string(std::string_view& raw) {
  if (const Scan scan = expect('"'); scan != Scan::kOk) return scan;
  const char* const start = at_;
  for (const char* from = at_;;) {
    const void* const found = std::memchr(from, '"', static_cast<std::size_t>(end_ - from));
    if (found == nullptr) return Scan::kNeedMore;
    const char* const quote = static_cast<const char*>(found);
    const char* slash = quote;
    while (slash != start && slash[-1] == '\\') --slash;
    if ((quote - slash) % 2 == 0) {
      raw = std::string_view(start, static_cast<std::size_t>(quote - start));
      at_ = quote + 1;
      return Scan::kOk;
    }
    from = quote + 1;
  }
}

Scan Scanner::number(std::string_view& text) {
  char next = 0;
  if (const Scan scan = peek(next); scan != Scan::kOk) return scan;
  const char* const start = at_;
  while (at_ != end_ && !ends_number(*at_)) {
    if (*at_ == '"' || *at_ == '{' || *at_ == '[' || *at_ == ':') return Scan::kBad;
    ++at_;
  }
  if (at_ == end_) return Scan::kNeedMore;
  if (at_ == start) return Scan::kBad;
  text = std::string_view(start, static_cast<std::size_t>(at_ - start));
  return Scan::kOk;
}

// A string begins behind one of "{[,:" and is followed by one of ":,]}": a text with a stray quote in it does not keep
// to that for long, and would otherwise turn strings inside out up to its end.
Scan Scanner::skip_open(int depth) {
  std::string_view ignored;
  char before = ',';
  while (at_ != end_) {
    const char c = *at_;
    switch (c) {
      case '"': {
        if (before != ',' && before != ':' && before != '[' && before != '{') return Scan::kBad;
        if (const Scan scan = string(ignored); scan != Scan::kOk) return scan;
        if (const Scan scan = peek(before); scan != Scan::kOk) return scan;
        if (before != ':' && before != ',' && before != ']' && before != '}') return Scan::kBad;
        continue;
      }
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (--depth == 0) {
          ++at_;
          return Scan::kOk;
        }
        break;
      default:
        break;
    }
    if (!is_space(c)) before = c;
    ++at_;
  }
  return Scan::kNeedMore;
}

Scan Scanner::skip_value() {
  char next = 0;
  if (const Scan scan = peek(next); scan != Scan::kOk) return scan;
  std::string_view ignored;
  if (next == '"') return string(ignored);
  if (next == '{' || next == '[') return skip_open(0);
  return number(ignored);
}

bool parse_us(std::string_view text, std::int64_t& ns) {
  const bool negative = !text.empty() && text.front() == '-';
  std::size_t i = negative ? 1 : 0;
  const std::size_t first = i;
  std::int64_t whole = 0;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
    if (i - first >= 15 && whole > kMostNs / 10'000) return false;
    whole = whole * 10 + (text[i] - '0');
  }
  if (i == first) return false;
  std::int64_t fraction = 0;
  if (i < text.size() && text[i] == '.') {
    std::int64_t unit = 100;
    const std::size_t point = i++;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i, unit /= 10) {
      fraction += unit * (text[i] - '0');
      if (unit == 0 && i == point + 4 && text[i] >= '5') ++fraction;
    }
  }
  if (i != text.size()) return from_double(text, 1000, ns);
  if (whole > kMostNs / 1000 - 1) return false;
  ns = (whole * 1000 + fraction) * (negative ? -1 : 1);
  return true;
}

bool parse_integer(std::string_view text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return true;
  double parsed = 0;
  const auto [stop, trouble] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (trouble != std::errc() || stop != text.data() + text.size()) return false;
  if (!std::isfinite(parsed) || std::fabs(parsed) > static_cast<double>(kMostNs)) return false;
  value = static_cast<std::int64_t>(parsed);
  return true;
}

std::string unescape(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    static constexpr std::string_view kFrom = "\"\\/bfnrt";
    static constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    const char escaped = raw[++i];
    if (const auto place = kFrom.find(escaped); place != std::string_view::npos) {
      out += kTo[place];
    } else if (const std::size_t taken = escaped == 'u' ? unicode_escape(raw, i, out) : 0; taken > 0) {
      i += taken - 1;
    } else {
      out += '\\';
      out += escaped;
    }
  }
  return out;
}

}  // namespace stoker::watch::kineto
