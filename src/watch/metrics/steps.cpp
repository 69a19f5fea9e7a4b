#include "watch/metrics/steps.h"

#include <algorithm>

namespace stoker::watch {
namespace {

struct Batch {
  std::uint64_t end_ns = 0;
  double samples = 0;
};

// Training batches in the order in which they came.
std::vector<Batch> training_batches(const Timeline& timeline) {
  std::vector<Batch> batches;
  for (const Iteration& one : timeline.iterations) {
    if (!one.training) continue;
    for (const Span* span : one.batches) batches.push_back({span->end_ns, std::max(0.0, span->value)});
  }
  std::sort(batches.begin(), batches.end(), [](const Batch& a, const Batch& b) { return a.end_ns < b.end_ns; });
  return batches;
}

std::vector<std::uint64_t> epoch_begins(const Timeline& timeline) {
  std::vector<std::uint64_t> begins;
  for (const Iteration& one : timeline.iterations) {
    if (one.training && !one.batches.empty()) begins.push_back(one.begin_ns);
  }
  return begins;
}

}  // namespace

std::vector<Step> find_steps(const Timeline& timeline) {
  const auto batches = training_batches(timeline);
  const auto begins = epoch_begins(timeline);
  std::vector<Step> steps;
  std::size_t segment = 0;
  std::size_t batch = 0;
  std::size_t epoch = 0;
  std::uint64_t from = timeline.training.begin_ns;
  for (const Interval& call : timeline.optimizer_calls) {
    Step step{.begin_ns = from, .end_ns = call.end_ns, .phases = {}, .first = steps.empty()};
    add_overlap(timeline.segments, {from, call.end_ns}, segment, step.phases);
    for (; batch < batches.size() && batches[batch].end_ns <= call.end_ns; ++batch)
      step.samples += batches[batch].samples;
    for (; epoch < begins.size() && begins[epoch] < call.end_ns; ++epoch) step.first_of_epoch = true;
    steps.push_back(step);
    from = call.end_ns;
  }
  return steps;
}

std::vector<Epoch> find_epochs(const Timeline& timeline, const std::vector<Step>& steps) {
  std::vector<Epoch> epochs;
  for (const Iteration& one : timeline.iterations) {
    if (!one.training || one.batches.empty()) continue;
    if (!epochs.empty()) epochs.back().end_ns = one.begin_ns;
    Epoch epoch{.begin_ns = one.begin_ns, .end_ns = timeline.training.end_ns, .phases = {}};
    epoch.first_batch_s = static_cast<double>(one.first_batch_ns - one.begin_ns) / 1e9;
    epochs.push_back(epoch);
  }
  std::size_t segment = 0;
  auto step = steps.begin();
  for (Epoch& epoch : epochs) {
    add_overlap(timeline.segments, {epoch.begin_ns, epoch.end_ns}, segment, epoch.phases);
    for (; step != steps.end() && step->end_ns <= epoch.end_ns; ++step) {
      ++epoch.steps;
      epoch.samples += step->samples;
    }
  }
  return epochs;
}

}  // namespace stoker::watch
