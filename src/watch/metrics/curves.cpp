#include "watch/metrics/curves.h"

#include <algorithm>
#include <string>

namespace stoker::watch {
namespace {

Signal<double> no_counter(std::string_view name) {
  return Signal<double>::unavailable("the recorder took no sample of " + std::string(name));
}

double overlap_ns(const std::vector<Interval>& windows, const Interval& span) {
  auto at = std::upper_bound(windows.begin(), windows.end(), span.begin_ns,
                             [](std::uint64_t t, const Interval& one) { return t < one.end_ns; });
  double sum = 0;
  for (; at != windows.end() && at->begin_ns < span.end_ns; ++at) {
    const std::uint64_t begin = std::max(at->begin_ns, span.begin_ns);
    const std::uint64_t end = std::min(at->end_ns, span.end_ns);
    if (end > begin) sum += static_cast<double>(end - begin);
  }
  return sum;
}

}  // namespace

const Counter* find_counter(const RunData& data, std::string_view name) {
  const auto found = std::find_if(data.counters.begin(), data.counters.end(),
                                  [&](const Counter& counter) { return counter.name == name; });
  return found == data.counters.end() || found->samples.empty() ? nullptr : &*found;
}

Signal<double> mean_over(const RunData& data, std::string_view name, const std::vector<Interval>& windows) {
  const Counter* counter = find_counter(data, name);
  if (counter == nullptr) return no_counter(name);
  double weight_all = 0, sum_all = 0, weight_most = 0, sum_most = 0;
  for (std::size_t i = 1; i < counter->samples.size(); ++i) {
    const Interval span{counter->samples[i - 1].time_ns, counter->samples[i].time_ns};
    const double weight = overlap_ns(windows, span);
    const double value = counter->samples[i].value * weight;
    weight_all += weight;
    sum_all += value;
    if (2 * weight < static_cast<double>(span.end_ns - span.begin_ns)) continue;
    weight_most += weight;
    sum_most += value;
  }
  if (weight_most > 0) return sum_most / weight_most;
  if (weight_all > 0) return sum_all / weight_all;
  return Signal<double>::unavailable("no sample of " + std::string(name) + " while steps ran");
}

Signal<double> peak(const RunData& data, std::string_view name) {
  const Counter* counter = find_counter(data, name);
  if (counter == nullptr) return no_counter(name);
  const auto most = std::max_element(counter->samples.begin(), counter->samples.end(),
                                     [](const Sample& a, const Sample& b) { return a.value < b.value; });
  return most->value;
}

Signal<double> last(const RunData& data, std::string_view name) {
  const Counter* counter = find_counter(data, name);
  if (counter == nullptr) return no_counter(name);
  return counter->samples.back().value;
}

Signal<double> share_below(const RunData& data, std::string_view name, double threshold, const Interval& window) {
  const Counter* counter = find_counter(data, name);
  if (counter == nullptr) return no_counter(name);
  std::size_t all = 0, below = 0;
  for (const Sample& sample : counter->samples) {
    if (sample.time_ns < window.begin_ns || sample.time_ns > window.end_ns) continue;
    ++all;
    below += sample.value < threshold ? 1 : 0;
  }
  if (all == 0) return Signal<double>::unavailable("no sample of " + std::string(name) + " in the training time");
  return static_cast<double>(below) / static_cast<double>(all);
}

}  // namespace stoker::watch
