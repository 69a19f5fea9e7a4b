// The lists behind the charts, thinned to what a screen can show. Times are seconds since the process started.
#pragma once

#include "stoker/base/json.h"
#include "stoker/watch/metrics.h"
#include "stoker/watch/run_data.h"

namespace stoker::watch {

// One point a step, or, in a long run, a group of steps: where it ends, milliseconds by phase of the mean step, the
// slowest step.
Json step_series(const Metrics& metrics);
Json epoch_marks(const Metrics& metrics);
// Buckets a quarter of a decade wide.
Json wait_histogram(const Metrics& metrics);
// The recorder's counters, each with its unit. A group of samples is shown by its largest.
Json curves(const RunData& data, const Metrics& metrics);

}  // namespace stoker::watch
