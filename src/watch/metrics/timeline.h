// The main thread's time cut into exclusive segments, the ground that all other figures stand on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stoker/watch/metrics.h"
#include "stoker/watch/run_data.h"

namespace stoker::watch {

struct Interval {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};

struct Segment {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  Phase phase = Phase::kOther;
};

// A pass over a loader.
struct Iteration {
  std::uint64_t begin_ns = 0;        // of data.start, or of data.epoch where there is none
  std::uint64_t end_ns = 0;          // of its last data.wait, or of data.end
  std::uint64_t first_batch_ns = 0;  // end of its first data.wait that gave a batch; 0: none
  std::vector<const Span*> batches;  // its data.wait spans that gave a batch
  bool training = false;             // false: it lies in an evaluation
};

struct Timeline {
  Interval training;                      // empty when nothing trained
  std::vector<Segment> segments;          // cover `training` without gap or overlap
  std::vector<Interval> evaluations;      // sorted, disjoint
  std::vector<Iteration> iterations;      // by begin
  std::vector<Interval> optimizer_calls;  // outermost, closed, by end
};

Timeline make_timeline(const RunData& data);

// True when `time_ns` lies in one of the sorted, disjoint `intervals`.
bool inside(const std::vector<Interval>& intervals, std::uint64_t time_ns);

// Adds the overlap of `segments` with `window` to `into`. `at` is where to start; it moves on to the first segment that
// reaches beyond the window, so that windows in order cost one pass.
void add_overlap(const std::vector<Segment>& segments, const Interval& window, std::size_t& at, PhaseTimes& into);

}  // namespace stoker::watch
