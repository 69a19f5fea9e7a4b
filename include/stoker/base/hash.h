// XXH3-128 with seed 0, the one hash that Stoker stores. Against accidents, not against an adversary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const Hash128&, const Hash128&) = default;
  // 32 hex digits, high half first, as xxhsum prints it.
  std::string hex() const;
};

Hash128 hash128(std::span<const std::byte> bytes);
Hash128 hash128(std::string_view text);
std::uint64_t hash64(std::string_view text);

// The same hash over bytes that arrive in pieces.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void update(std::span<const std::byte> bytes);
  Hash128 digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// CRC-32 (IEEE 802.3, as zlib and zip have it), continued from `crc`.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc = 0);

}  // namespace stoker
