#include "stoker/watch/metrics.h"

#include <algorithm>
#include <cmath>

#include "watch/metrics/curves.h"
#include "watch/metrics/steps.h"
#include "watch/metrics/timeline.h"

namespace stoker::watch {
namespace {

constexpr double kIdleUtilisation = 0.10;

// What must not be taken for training when a figure is read off the 1 Hz samples.
std::vector<Interval> loop_windows(const Timeline& timeline) {
  std::vector<Interval> windows;
  for (const Segment& segment : timeline.segments) {
    if (segment.phase == Phase::kEvaluation || segment.phase == Phase::kCheckpoint) continue;
    if (!windows.empty() && windows.back().end_ns == segment.begin_ns) {
      windows.back().end_ns = segment.end_ns;
    } else {
      windows.push_back({segment.begin_ns, segment.end_ns});
    }
  }
  return windows;
}

void measure_steps(Metrics& metrics) {
  std::vector<double> steady;
  double loop = 0;
  double samples = 0;
  for (const Step& step : metrics.steps) {
    if (step.steady()) steady.push_back(step.seconds());
    if (step.first) continue;
    loop += step.seconds();
    for (std::size_t i = 0; i < kPhaseCount; ++i) metrics.loop_phases.seconds[i] += step.phases.seconds[i];
    samples += step.samples;
  }
  metrics.step_s = distribution(std::move(steady));
  if (metrics.steps.size() < 2) {
    const auto why =
        Signal<double>::unavailable("needs two optimizer steps, the run has " + std::to_string(metrics.steps.size()));
    metrics.loop_s = metrics.samples_per_s = metrics.samples_per_step = why;
    return;
  }
  const auto counted = static_cast<double>(metrics.steps.size() - 1);
  metrics.loop_s = loop / counted;
  metrics.loop_phases[Phase::kEvaluation] = metrics.loop_phases[Phase::kCheckpoint] = 0;
  for (double& seconds : metrics.loop_phases.seconds) seconds /= counted;
  if (samples == 0 || loop == 0) {
    metrics.samples_per_s = metrics.samples_per_step = Signal<double>::unavailable("batch sizes were not recorded");
    return;
  }
  metrics.samples_per_s = samples / loop;
  metrics.samples_per_step = samples / counted;
}

void measure_waits(const Timeline& timeline, Metrics& metrics) {
  std::vector<double> first;
  for (const Iteration& one : timeline.iterations) {
    if (!one.training || one.batches.empty()) continue;
    first.push_back(static_cast<double>(one.first_batch_ns - one.begin_ns) / 1e9);
    for (std::size_t i = 1; i < one.batches.size(); ++i) {
      metrics.waits_s.push_back(static_cast<double>(one.batches[i]->end_ns - one.batches[i]->begin_ns) / 1e9);
    }
  }
  for (const Iteration& one : timeline.iterations) {
    if (one.training) continue;
    std::uint64_t waited = one.first_batch_ns > one.begin_ns ? one.first_batch_ns - one.begin_ns : 0;
    for (std::size_t i = 1; i < one.batches.size(); ++i) waited += one.batches[i]->end_ns - one.batches[i]->begin_ns;
    metrics.evaluation_wait_s += static_cast<double>(waited) / 1e9;
  }
  metrics.wait_s = distribution(metrics.waits_s);
  metrics.first_batch_s = distribution(std::move(first));
}

double seconds_of(const Span& span) { return static_cast<double>(span.end_ns - span.begin_ns) / 1e9; }

// Spans come by thread, then begin: a Store's stage follows the checkpoint that it is a part of.
void measure_checkpoints(const RunData& data, Metrics& metrics) {
  double seconds = 0;
  double bytes = 0;
  const Span* around = nullptr;
  for (const Span& span : data.spans) {
    const std::string& name = data.names[span.name];
    if (name == "save.stage" && around != nullptr && around->thread == span.thread && span.end_ns <= around->end_ns) {
      metrics.checkpoints.back().by_store = true;
      metrics.checkpoints.back().stage_s += seconds_of(span);
    }
    if (name != "checkpoint" || span.open) continue;
    around = &span;
    const double took = seconds_of(span);
    metrics.checkpoints.push_back({span.begin_ns, took, std::max(0.0, span.value)});
    if (span.value <= 0) continue;
    seconds += took;
    bytes += span.value;
  }
  if (seconds > 0) {
    metrics.checkpoint_mb_per_s = bytes / 1e6 / seconds;
  } else {
    metrics.checkpoint_mb_per_s = Signal<double>::unavailable(
        metrics.checkpoints.empty() ? "the run saved no checkpoint" : "the sizes of its checkpoints were not recorded");
  }
}

Signal<double> since(std::uint64_t start_ns, std::uint64_t time_ns, const char* why_not) {
  if (time_ns <= start_ns || start_ns == 0) return Signal<double>::unavailable(why_not);
  return static_cast<double>(time_ns - start_ns) / 1e9;
}

// 0 when the only epoch may have been cut short.
std::uint64_t first_epoch_end(const RunData& data, const Metrics& metrics) {
  const std::string& ended = data.run["outcome"]["kind"].as_string();
  const bool ended_by_itself = ended == "finished" || ended == "exit";
  if (metrics.epochs.empty() || (metrics.epochs.size() == 1 && !ended_by_itself)) return 0;
  return metrics.epochs[0].end_ns;
}

void measure_milestones(const RunData& data, const Timeline& timeline, Metrics& metrics) {
  const std::uint64_t start = metrics.start_ns;
  const auto imported = data.run["python"]["torch_imported_ns"].as_int();
  const std::uint64_t import_ns = imported > 0 ? static_cast<std::uint64_t>(imported) : 0;
  std::uint64_t batch_ns = 0;
  for (const Iteration& one : timeline.iterations) {
    if (batch_ns == 0 && one.training) batch_ns = one.first_batch_ns;
  }
  Milestones& at = metrics.milestones;
  at.import_done = since(start, import_ns, "the script's import of torch was not seen");
  at.first_batch = since(start, batch_ns, "no training batch was seen");
  at.first_step = since(start, metrics.steps.empty() ? 0 : metrics.steps[0].end_ns, "no optimizer step was seen");
  at.first_epoch = since(start, first_epoch_end(data, metrics), "no whole epoch was seen");
  at.end = since(start, data.last_ns, "the trace is empty");
}

}  // namespace

Metrics measure(const RunData& data) {
  const Timeline timeline = make_timeline(data);
  Metrics metrics;
  const auto started = data.run["started_monotonic_ns"].as_int();
  metrics.start_ns = started > 0 ? static_cast<std::uint64_t>(started) : data.first_ns;
  metrics.training_ns = timeline.training.begin_ns;
  metrics.end_ns = timeline.training.end_ns;
  metrics.lost_events = data.lost_events;
  metrics.copies_seen = std::any_of(data.spans.begin(), data.spans.end(),
                                    [&](const Span& span) { return data.names[span.name] == "copy"; });
  std::size_t from = 0;
  add_overlap(timeline.segments, timeline.training, from, metrics.phases);
  metrics.steps = find_steps(timeline);
  metrics.epochs = find_epochs(timeline, metrics.steps);
  measure_steps(metrics);
  measure_waits(timeline, metrics);
  measure_checkpoints(data, metrics);
  measure_milestones(data, timeline, metrics);

  const auto windows = loop_windows(timeline);
  metrics.cpu = {mean_over(data, "cpu.trainee", windows), mean_over(data, "cpu.workers", windows),
                 last(data, "cpu.limit")};
  metrics.memory_peak_bytes = peak(data, "memory.used");
  metrics.memory_limit_bytes = last(data, "memory.limit");
  metrics.gpu_idle_share = share_below(data, "gpu.0.busy", kIdleUtilisation, timeline.training);
  return metrics;
}

}  // namespace stoker::watch
