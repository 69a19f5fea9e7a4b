#include "tiny_png.h"

#include <algorithm>
#include <span>

#include "stoker/base/hash.h"

namespace stoker::testing {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  return big_endian(static_cast<std::uint32_t>(data.size())) + body +
         big_endian(crc32(std::as_bytes(std::span(body.data(), body.size()))));
}

std::uint32_t adler32(const std::string& data) {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char c : data) {
    a = (a + static_cast<std::uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

// A zlib stream of stored blocks.
std::string stored(const std::string& data) {
  constexpr std::size_t kMost = 65535;
  std::string out("\x78\x01", 2);
  for (std::size_t at = 0; at < data.size(); at += kMost) {
    const std::size_t n = std::min(kMost, data.size() - at);
    const auto length = static_cast<std::uint16_t>(n);
    const auto inverse = static_cast<std::uint16_t>(~length);
    out.push_back(at + n == data.size() ? 1 : 0);
    for (const std::uint16_t value : {length, inverse}) {
      out.push_back(static_cast<char>(value & 0xFF));
      out.push_back(static_cast<char>(value >> 8));
    }
    out.append(data, at, n);
  }
  return out + big_endian(adler32(data));
}

}  // namespace

std::string tiny_png(int width, int height, std::uint8_t red) {
  std::string rows;
  for (int y = 0; y < height; ++y) {
    rows.push_back(0);  // no filter
    for (int x = 0; x < width; ++x) {
      rows.push_back(static_cast<char>(red));
      rows.push_back(static_cast<char>(x));
      rows.push_back(static_cast<char>(y));
    }
  }
  std::string header = big_endian(static_cast<std::uint32_t>(width)) + big_endian(static_cast<std::uint32_t>(height));
  header += std::string("\x08\x02\x00\x00\x00", 5);
  return std::string("\x89PNG\r\n\x1a\n", 8) + chunk("IHDR", header) + chunk("IDAT", stored(rows)) + chunk("IEND", "");
}

}  // namespace stoker::testing
