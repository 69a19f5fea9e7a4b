// Compute-bound: the model's own work is what takes the time; where it is nearly all, there is nothing to fix.
#include <fmt/format.h>

#include "watch/verdict/rules.h"

namespace stoker::watch {
namespace {

constexpr double kComputeShare = 0.50;  // of the training time
constexpr double kNothingElse = 0.85;   // of it, from which nothing is left to fix around the model

Finding compute(const Case& run) {
  const PhaseTimes& phases = run.metrics.phases;
  Finding finding;
  finding.evidence.push_back(fmt::format(
      "forward {}, backward {}, optimizer {}{} of the training time", percent(phases.share(Phase::kForward)),
      percent(phases.share(Phase::kBackward)), percent(phases.share(Phase::kOptimizer)),
      run.metrics.copies_seen ? ", copies " + percent(phases.share(Phase::kCopy)) : ""));
  finding.confidence = confidence_of(run.metrics);
  return finding;
}

// False where the model is known to have no convolutions, or to run them in channels_last already.
bool layout_may_help(const VerdictInputs& inputs) {
  if (!inputs.channels_last) return true;
  return inputs.convolutions > 0 && !*inputs.channels_last;
}

}  // namespace

std::optional<Finding> nothing_to_fix(const Case& run) {
  const double share = compute_share(run.metrics.phases);
  if (share < kNothingElse) return std::nullopt;
  Finding finding = compute(run);
  finding.says =
      fmt::format("{} of the training time is the model's own compute; the rest is in order", percent(share));
  finding.fix = "None needed around the model; a faster step can only come from the model itself";
  finding.gain = Signal<Gain>::unavailable("there is no fix to predict for");
  return finding;
}

std::optional<Finding> compute_bound(const Case& run) {
  const double share = compute_share(run.metrics.phases);
  if (share < kComputeShare || share >= kNothingElse) return std::nullopt;
  Finding finding = compute(run);
  finding.says = fmt::format("The model's compute takes {} of the training time", percent(share));
  finding.gain = Signal<Gain>::unavailable("depends on the model; try it and compare the two runs");
  if (run.inputs.gpu) {
    finding.fix = "Let the GPU's faster formats do the work";
    finding.fix_line = "with torch.autocast('cuda', dtype=torch.float16):";
  } else if (!layout_may_help(run.inputs)) {
    finding.fix = run.inputs.convolutions > 0
                      ? "None known around the model: its convolutions use channels_last already; a faster step can "
                        "only come from the model itself"
                      : "None known around the model; a faster step can only come from the model itself";
    finding.gain = Signal<Gain>::unavailable("there is no fix to predict for");
  } else {
    finding.fix = "Let the convolutions use the layout that the CPU is fastest with";
    finding.fix_line = "model = model.to(memory_format=torch.channels_last)";
  }
  return finding;
}

}  // namespace stoker::watch
