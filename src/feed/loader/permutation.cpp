#include "feed/loader/permutation.h"

#include <algorithm>
#include <bit>

#include "feed/loader/random.h"

namespace stoker::feed {
namespace {

// The finaliser of splitmix64: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

// Halves have at least 5 bits: with narrower ones the network reaches too few of the permutations of a small set.
Permutation::Permutation(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch)
    : n_(n), half_bits_(std::max(5, (static_cast<int>(std::bit_width(n > 1 ? n - 1 : 1)) + 1) / 2)) {
  SampleRandom random(seed, epoch, 0, Purpose::kShuffle);
  for (std::uint64_t& key : keys_) {
    const std::uint64_t high = random.next();
    key = (high << 32) | random.next();
  }
}

std::uint64_t Permutation::once(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (const std::uint64_t key : keys_) {
    const std::uint64_t next = left ^ (mix(right + key) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::uint64_t Permutation::operator()(std::uint64_t i) const {
  do {
    i = once(i);
  } while (i >= n_);
  return i;
}

}  // namespace stoker::feed
