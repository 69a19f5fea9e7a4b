// Checkpoint-bound: the training stands still while a checkpoint is written.
#include <algorithm>

#include <fmt/format.h>

#include "watch/verdict/rules.h"

namespace stoker::watch {
namespace {

constexpr double kCheckpointShare = 0.08;  // of the training time
// What is left of the blocking time with a Store, which returns once the state is staged (low, likely, high).
constexpr double kLeft[] = {0.08, 0.25, 0.34};
// The same of saving half as often (low, likely, high).
constexpr double kLeftOfHalf[] = {0.45, 0.5, 0.6};

// Blocked seconds of the saves that are a Store's already, and the part of them that staged.
struct StoreTime {
  double blocked_s = 0;
  double stage_s = 0;
};

StoreTime store_time(const Metrics& m) {
  StoreTime sum;
  for (const Checkpoint& one : m.checkpoints) {
    if (!one.by_store) continue;
    sum.blocked_s += one.seconds;
    sum.stage_s += one.stage_s;
  }
  return sum;
}

// What a Store blocks for is staging, and waiting until the save before is on the disk.
void save_less_often(const StoreTime& store, Finding& finding) {
  const double rest = store.blocked_s - store.stage_s;
  finding.evidence.push_back(fmt::format(
      "the saves are Stoker's already: {:.3g} s staged the state, {:.3g} s gathered it or waited for the save "
      "before",
      store.stage_s, rest));
  finding.fix = rest > store.stage_s
                    ? "Save less often, or keep the store on a faster disk: one save is not on the disk "
                      "when the next begins"
                    : "Save less often: the state takes this long to copy";
  finding.fix_line = "Session(..., every=2 * every)";
}

}  // namespace

std::optional<Finding> checkpoint_bound(const Case& run) {
  const Metrics& m = run.metrics;
  const double share = m.phases.share(Phase::kCheckpoint);
  if (share < kCheckpointShare) return std::nullopt;
  Finding finding;
  finding.says = fmt::format("The training stands still for checkpoints {} of its time", percent(share));
  const double seconds = m.phases[Phase::kCheckpoint];
  finding.evidence.push_back(
      fmt::format("{} checkpoints took {:.3g} s of {:.3g} s", m.checkpoints.size(), seconds, m.training_seconds()));
  finding.evidence.push_back(m.checkpoint_mb_per_s ? fmt::format("written at {:.3g} MB/s", *m.checkpoint_mb_per_s)
                                                   : "their speed is unavailable: " + m.checkpoint_mb_per_s.why);
  finding.confidence = m.checkpoints.size() >= 3 ? Confidence::kHigh : Confidence::kMedium;
  const StoreTime store = store_time(m);
  const bool by_store = store.blocked_s > seconds / 2;
  const auto& left = by_store ? kLeftOfHalf : kLeft;
  if (by_store) {
    save_less_often(store, finding);
  } else {
    finding.fix = "Save with Stoker's Store: it returns once the state is staged and writes beside the training";
    finding.fix_line = "store.save(step, model=model.state_dict(), optimizer=optimizer.state_dict())";
  }
  finding.gain = Gain{100 * share * (1 - left[1]), 100 * share * (1 - left[2]), 100 * share * (1 - left[0])};
  finding.gain_of = "training time";
  finding.saved_s = seconds * (1 - left[1]);
  return finding;
}

}  // namespace stoker::watch
