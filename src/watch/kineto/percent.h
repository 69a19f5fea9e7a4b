// A share as a percentage; 0 of nothing.
#pragma once

#include <cstdint>

namespace stoker::watch::kineto {

inline double percent(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

}  // namespace stoker::watch::kineto
