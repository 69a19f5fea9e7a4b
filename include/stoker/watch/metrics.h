// What a recorded run amounts to in figures: steps, the exclusive phase tree, epochs, waits, checkpoints and curves.
// docs/reference/metrics.md defines each one, with its formula and unit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/base/status.h"
#include "stoker/watch/run_data.h"

namespace stoker::watch {

// Where the trainee's main thread was. Each instant of the training time belongs to exactly one phase.
enum class Phase : std::uint8_t {
  kWait,         // for the next batch
  kLoaderStart,  // making an iterator: worker start
  kCopy,
  kForward,
  kBackward,
  kOptimizer,
  kCheckpoint,
  kEvaluation,  // with all that happens in it but checkpoints
  kCompile,
  kGc,
  kOther,  // what no span covers
};
inline constexpr std::size_t kPhaseCount = 11;
// "wait", "loader_start", …: the keys in JSON.
const char* name(Phase phase);
// "wait for data", "loader start", …
const char* title(Phase phase);

// Seconds by phase.
struct PhaseTimes {
  std::array<double, kPhaseCount> seconds{};

  double& operator[](Phase phase) { return seconds[static_cast<std::size_t>(phase)]; }
  double operator[](Phase phase) const { return seconds[static_cast<std::size_t>(phase)]; }
  double total() const;
  // The share of `phase` in the total, 0–1; 0 of an empty tree.
  double share(Phase phase) const;
  // All shares in tenths of a percent, rounded so that they sum to 1000 (largest remainder); all 0 of an empty tree.
  std::array<int, kPhaseCount> per_mille() const;
};

// From the end of the step before to the end of this one's optimizer call.
struct Step {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  PhaseTimes phases;
  double samples = 0;
  bool first = false;           // of the run
  bool first_of_epoch = false;  // has the loader's start and its first batch in it

  // Its time without evaluation and checkpoints, which are no part of a step.
  double seconds() const;
  double compute_seconds() const;  // copy, forward, backward, optimizer
  // False for steps that would poison an average: the first, the first of an epoch, one with a compilation, an
  // evaluation or a checkpoint in it.
  bool steady() const;
};

// Linear interpolation between order statistics; all 0 when count is 0.
struct Distribution {
  std::size_t count = 0;
  double mean = 0, min = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
};
Distribution distribution(std::vector<double> values);

// One pass over the training loader, up to the next one: with the evaluation and the checkpoint that follow it.
struct Epoch {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
  std::size_t steps = 0;
  double samples = 0;
  double first_batch_s = 0;  // from asking for the iterator to having the first batch
  PhaseTimes phases;

  double seconds() const { return static_cast<double>(end_ns - begin_ns) / 1e9; }
};

struct Checkpoint {
  std::uint64_t begin_ns = 0;
  double seconds = 0;
  double bytes = 0;       // 0: not known
  bool by_store = false;  // a Store or Session of Stoker's saved it: it has a save.stage span in it
  double stage_s = 0;     // of that span
};

// Seconds since the process started.
struct Milestones {
  Signal<double> import_done, first_batch, first_step, first_epoch, end;
};

// Cores in use while steps ran, from the 1 Hz samples weighted by how much of each second was training.
struct CpuUse {
  Signal<double> trainee, workers, limit;
};

struct Metrics {
  std::uint64_t start_ns = 0;     // of the process, or of the trace if that is not known
  std::uint64_t training_ns = 0;  // begin of the first loader, batch or forward
  std::uint64_t end_ns = 0;       // end of the last span of training; equals training_ns when nothing trained
  PhaseTimes phases;              // over [training_ns, end_ns]
  bool copies_seen = false;       // no hook reports copies: without such spans their time is in other phases, not zero

  std::vector<Step> steps;
  Distribution step_s;     // over steady steps
  Signal<double> loop_s;   // training time per step, epoch starts included, the run's first step not
  PhaseTimes loop_phases;  // of an average step of loop_s
  Signal<double> samples_per_s;
  Signal<double> samples_per_step;

  std::vector<double> waits_s;  // one a training batch, but for each epoch's first
  Distribution wait_s;
  Distribution first_batch_s;
  std::vector<Epoch> epochs;
  double evaluation_wait_s = 0;  // loader start and waits within evaluations
  std::vector<Checkpoint> checkpoints;
  Signal<double> checkpoint_mb_per_s;

  CpuUse cpu;
  Signal<double> memory_peak_bytes, memory_limit_bytes;
  Signal<double> gpu_idle_share;  // of 1 Hz samples with utilisation under 10 %
  Milestones milestones;
  std::uint64_t lost_events = 0;

  // False for a phase that was not looked for; lists leave it out.
  bool shows(Phase phase) const { return phase != Phase::kCopy || copies_seen; }
  double training_seconds() const { return static_cast<double>(end_ns - training_ns) / 1e9; }
  std::size_t steady_steps() const { return step_s.count; }
};

// Cost: O(n log n) in the main thread's spans.
Metrics measure(const RunData& data);

// The figures without the per-step lists: what run.json keeps under "metrics" and the report shows.
Json to_json(const Metrics& metrics);

}  // namespace stoker::watch
