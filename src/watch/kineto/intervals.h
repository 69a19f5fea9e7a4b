// Stretches of time: half-open, in nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::watch::kineto {

struct Stretch {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};
// Sorted, apart from each other, none empty.
using Stretches = std::vector<Stretch>;

Stretches merged(std::vector<Stretch> any);
std::int64_t length_ns(const Stretches& stretches);
std::int64_t common_ns(const Stretches& a, const Stretches& b);
// Where `all` has time that `taken` has not.
Stretches without(const Stretches& all, const Stretches& taken);

}  // namespace stoker::watch::kineto
