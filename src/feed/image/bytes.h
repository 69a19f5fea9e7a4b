// Reading numbers out of a file's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace stoker::feed {

using Bytes = std::span<const std::uint8_t>;

inline Bytes as_bytes(std::span<const std::byte> file) {
  return {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
}

// The callers check that the bytes are there.
inline std::uint16_t be16(const std::uint8_t* p) { return static_cast<std::uint16_t>(p[0] << 8 | p[1]); }
inline std::uint16_t le16(const std::uint8_t* p) { return static_cast<std::uint16_t>(p[1] << 8 | p[0]); }
inline std::uint32_t be32(const std::uint8_t* p) { return std::uint32_t{be16(p)} << 16 | be16(p + 2); }
inline std::uint32_t le32(const std::uint8_t* p) { return std::uint32_t{le16(p + 2)} << 16 | le16(p); }

inline std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
inline bool starts_with(Bytes bytes, std::string_view prefix) { return as_text(bytes).starts_with(prefix); }

// At most `count` bytes from `offset` on; empty past the end.
inline Bytes slice(Bytes bytes, std::size_t offset, std::size_t count = SIZE_MAX) {
  if (offset >= bytes.size()) return {};
  return bytes.subspan(offset, count < bytes.size() - offset ? count : bytes.size() - offset);
}

}  // namespace stoker::feed
