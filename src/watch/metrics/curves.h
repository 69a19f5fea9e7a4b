// Figures from the counters that the recorder samples.
#pragma once

#include <string_view>
#include <vector>

#include "watch/metrics/timeline.h"

namespace stoker::watch {

const Counter* find_counter(const RunData& data, std::string_view name);

// The mean of a counter over `windows` (sorted, disjoint). A sample stands for the time since the sample before it, and
// counts by how much of that time lies in the windows, if that is at least half of it; where no sample reaches half,
// all that overlap count. Unavailable: no such counter, or no sample in the windows.
Signal<double> mean_over(const RunData& data, std::string_view name, const std::vector<Interval>& windows);

Signal<double> peak(const RunData& data, std::string_view name);
Signal<double> last(const RunData& data, std::string_view name);

// The share of samples below `threshold`, over [begin, end].
Signal<double> share_below(const RunData& data, std::string_view name, double threshold, const Interval& window);

}  // namespace stoker::watch
