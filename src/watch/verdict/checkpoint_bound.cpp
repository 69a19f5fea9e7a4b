// Checkpoint-bound: the training stands still while a checkpoint is written.
#include <algorithm>

#include <fmt/format.h>

#include "watch/verdict/rules.h"

namespace stoker::watch {
namespace {

constexpr double kCheckpointShare = 0.08;  // of the training time
// What is left of the blocking time with a Store, which returns once the state is staged (low, likely, high).
constexpr double kLeft[] = {0.08, 0.25, 0.34};

}  // namespace

std::optional<Finding> checkpoint_bound(const Case& run) {
  const Metrics& m = run.metrics;
  const double share = m.phases.share(Phase::kCheckpoint);
  if (share < kCheckpointShare) return std::nullopt;
  Finding finding;
  finding.cause = Cause::kCheckpointBound;
  finding.says = fmt::format("The training stands still for checkpoints {} of its time", percent(share));
  const double seconds = m.phases[Phase::kCheckpoint];
  finding.evidence.push_back(
      fmt::format("{} checkpoints took {:.3g} s of {:.3g} s", m.checkpoints.size(), seconds, m.training_seconds()));
  finding.evidence.push_back(m.checkpoint_mb_per_s ? fmt::format("written at {:.3g} MB/s", *m.checkpoint_mb_per_s)
                                                   : "their speed is unavailable: " + m.checkpoint_mb_per_s.why);
  finding.confidence = m.checkpoints.size() >= 3 ? Confidence::kHigh : Confidence::kMedium;
  finding.fix = "Save with Stoker's Store: it returns once the state is staged and writes beside the training";
  finding.fix_line = "store.save(step, model=model.state_dict(), optimizer=optimizer.state_dict())";
  finding.gain = Gain{100 * share * (1 - kLeft[1]), 100 * share * (1 - kLeft[2]), 100 * share * (1 - kLeft[0])};
  finding.gain_of = "training time";
  finding.saved_s = seconds * (1 - kLeft[1]);
  return finding;
}

}  // namespace stoker::watch
