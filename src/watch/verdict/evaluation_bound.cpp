// Evaluation-bound: much of the time is spent on evaluating, not on training.
#include <algorithm>

#include <fmt/format.h>

#include "watch/verdict/rules.h"

namespace stoker::watch {
namespace {

constexpr double kEvaluationShare = 0.25;   // of the training time
constexpr double kWaitingEvaluation = 0.5;  // of the evaluation, from which its loader is the cause
constexpr double kEvery = 3;                // epochs between evaluations in the fix
// Of the evaluation's waiting that a faster loader takes away (low, likely, high).
constexpr double kWaitSaved[] = {0.3, 0.6, 0.9};

}  // namespace

std::optional<Finding> evaluation_bound(const Case& run) {
  const Metrics& m = run.metrics;
  const double share = m.phases.share(Phase::kEvaluation);
  if (share < kEvaluationShare) return std::nullopt;
  const double seconds = m.phases[Phase::kEvaluation];
  const double waiting = std::min(1.0, m.evaluation_wait_s / seconds);
  Finding finding;
  finding.says = fmt::format("Evaluation takes {} of the training time", percent(share));
  finding.evidence.push_back(
      fmt::format("{:.3g} s of {:.3g} s, over {} epochs", seconds, m.training_seconds(), m.epochs.size()));
  finding.evidence.push_back(fmt::format("{} of it is waiting for data", percent(waiting)));
  finding.confidence = m.epochs.size() >= 2 ? Confidence::kHigh : Confidence::kMedium;
  finding.gain_of = "training time";
  const bool refused = run.inputs.accelerable && !*run.inputs.accelerable;  // likely for this loader too
  if (waiting >= kWaitingEvaluation && !run.inputs.accelerated && !refused) {
    finding.fix = "Load the evaluation's batches with Stoker's threads";
    finding.fix_line = "val_loader = stoker.accelerate(val_loader)";
    const double points = 100 * share * waiting;
    finding.gain = Gain{points * kWaitSaved[1], points * kWaitSaved[0], points * kWaitSaved[2]};
  } else {
    finding.fix = fmt::format("Evaluate every {:.0f} epochs, and after the last", kEvery);
    finding.fix_line = fmt::format("if epoch % {:.0f} == {:.0f} or epoch == epochs - 1:", kEvery, kEvery - 1);
    const double points = 100 * share * (1 - 1 / kEvery);
    finding.gain = Gain{points, std::max(0.0, points - 5), points + 3};
  }
  finding.saved_s = (*finding.gain).points / 100 * m.training_seconds();
  return finding;
}

}  // namespace stoker::watch
