#include "stoker/base/hash.h"

#include <fmt/format.h>
#include <zlib.h>

#include STOKER_XXHASH_HEADER  // whose macros stand for the functions that suit this CPU

namespace stoker {
namespace {

Hash128 from_xxh(XXH128_hash_t hash) { return {hash.low64, hash.high64}; }

}  // namespace

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Hash128 hash128(std::span<const std::byte> bytes) { return from_xxh(XXH3_128bits(bytes.data(), bytes.size())); }
Hash128 hash128(std::string_view text) { return from_xxh(XXH3_128bits(text.data(), text.size())); }
std::uint64_t hash64(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() { XXH3_128bits_reset(xxh); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::update(std::span<const std::byte> bytes) { XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size()); }
Hash128 Hasher::digest() const { return from_xxh(XXH3_128bits_digest(state_->xxh)); }

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t crc) {
  return static_cast<std::uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace stoker
