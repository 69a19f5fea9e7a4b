// Random numbers that are a function of where they are used: (seed, epoch, position, purpose), never of who asks first.
//
// The generator is Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011):
// ten rounds of multiply and xor turn a counter of 128 bits and a key of 64 into 128 random bits.
#pragma once

#include <array>
#include <cstdint>

namespace stoker::feed {

using PhiloxBlock = std::array<std::uint32_t, 4>;

constexpr PhiloxBlock philox(PhiloxBlock counter, std::uint64_t key) {
  auto key0 = static_cast<std::uint32_t>(key);
  auto key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// Streams that never share a number.
enum class Purpose : std::uint32_t { kTransform = 0, kSubstitute = 1, kWeighted = 2, kShuffle = 3 };

// One sample's numbers for one purpose.
class SampleRandom {
 public:
  // `epoch` counts to 2³², numbers drawn of one stream to 2¹⁸.
  SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position, Purpose purpose)
      : key_(seed),
        counter_{static_cast<std::uint32_t>(purpose) << 16, static_cast<std::uint32_t>(epoch),
                 static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32)} {}

  std::uint32_t next() {
    if (used_ == 4) {
      block_ = philox(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_[used_++];
  }
  // In [0, 1), 53 bits.
  double uniform() {
    const std::uint64_t high = next() >> 5;
    const std::uint64_t low = next() >> 6;
    return static_cast<double>((high << 26) | low) * 0x1p-53;
  }
  // In [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // In [0, limit); the bias is below limit / 2³².
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>((std::uint64_t{next()} * limit) >> 32); }

 private:
  const std::uint64_t key_;
  PhiloxBlock counter_;
  PhiloxBlock block_{};
  unsigned used_ = 4;
};

}  // namespace stoker::feed
