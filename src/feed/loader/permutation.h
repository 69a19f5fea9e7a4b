// A permutation of 0 … n − 1 chosen by a key, without a list: a Feistel network over the next even power of two, walked
// along its cycle until the value falls below n.
#pragma once

#include <array>
#include <cstdint>

namespace stoker::feed {

class Permutation {
 public:
  Permutation(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch);

  // `i` < n. Cost: about 2 walks of 8 rounds; up to 1024 / n walks where n is small.
  std::uint64_t operator()(std::uint64_t i) const;

 private:
  static constexpr int kRounds = 8;

  std::uint64_t once(std::uint64_t value) const;

  std::uint64_t n_;
  int half_bits_;
  std::array<std::uint64_t, kRounds> keys_;
};

}  // namespace stoker::feed
