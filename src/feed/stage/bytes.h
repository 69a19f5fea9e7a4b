// Little-endian numbers and exact reads, for formats that stand in other people's files. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/base/status.h"
#include "stoker/base/text.h"

namespace stoker::feed {

// The caller has checked that `at` + the width lies in `bytes`.
inline std::uint64_t little(std::string_view bytes, std::size_t at, int width) {
  std::uint64_t value = 0;
  for (int i = width - 1; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]);
  }
  return value;
}
inline std::uint16_t little16(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint16_t>(little(bytes, at, 2));
}
inline std::uint32_t little32(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint32_t>(little(bytes, at, 4));
}
inline std::uint64_t little64(std::string_view bytes, std::size_t at) { return little(bytes, at, 8); }

// `size` bytes at `offset`, which the caller has checked to lie in the file. Errors: kIo, kCorrupt (the file shrank).
Result<std::string> read_exactly(int fd, std::uint64_t offset, std::uint64_t size, const std::string& shown);

// A member's name for a message, cut to a line.
inline std::string printable_name(std::string_view name) {
  return printable(name.substr(0, 200)) + (name.size() > 200 ? "…" : "");
}

}  // namespace stoker::feed
