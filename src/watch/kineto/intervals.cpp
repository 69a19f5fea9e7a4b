#include "watch/kineto/intervals.h"

#include <algorithm>

#include "watch/kineto/events.h"

namespace stoker::watch::kineto {

Stretches merged(std::vector<Stretch> any) {
  const auto by_start = [](const Stretch& a, const Stretch& b) { return a.start_ns < b.start_ns; };
  if (!std::is_sorted(any.begin(), any.end(), by_start)) std::sort(any.begin(), any.end(), by_start);
  Stretches out;
  for (const Stretch& next : any) {
    if (next.end_ns <= next.start_ns) continue;
    if (!out.empty() && next.start_ns <= out.back().end_ns) {
      out.back().end_ns = std::max(out.back().end_ns, next.end_ns);
    } else {
      out.push_back(next);
    }
  }
  return out;
}

std::int64_t length_ns(const Stretches& stretches) {
  std::int64_t sum = 0;
  for (const Stretch& stretch : stretches) add_ns(sum, stretch.end_ns - stretch.start_ns);
  return sum;
}

std::int64_t common_ns(const Stretches& a, const Stretches& b) {
  std::int64_t sum = 0;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
    const std::int64_t start = std::max(i->start_ns, j->start_ns);
    const std::int64_t end = std::min(i->end_ns, j->end_ns);
    if (end > start) add_ns(sum, end - start);
    (i->end_ns < j->end_ns ? i : j)++;
  }
  return sum;
}

Stretches without(const Stretches& all, const Stretches& taken) {
  Stretches out;
  auto next = taken.begin();
  for (const Stretch& one : all) {
    std::int64_t from = one.start_ns;
    while (next != taken.end() && next->end_ns <= from) ++next;
    for (auto hole = next; hole != taken.end() && hole->start_ns < one.end_ns; ++hole) {
      if (hole->start_ns > from) out.push_back({from, hole->start_ns});
      from = std::max(from, hole->end_ns);
    }
    if (from < one.end_ns) out.push_back({from, one.end_ns});
  }
  return out;
}

}  // namespace stoker::watch::kineto
