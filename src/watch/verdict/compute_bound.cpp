// Compute-bound: the model's own work is what takes the time; where it is nearly all, there is nothing to fix.
#include <fmt/format.h>

#include "watch/verdict/rules.h"

namespace stoker::watch {
namespace {

constexpr double kComputeShare = 0.50;  // of the training time
constexpr double kNothingElse = 0.85;   // of it, from which nothing is left to fix around the model

}  // namespace

std::optional<Finding> compute_bound(const Case& run) {
  const Metrics& m = run.metrics;
  const double share = compute_share(m.phases);
  if (share < kComputeShare) return std::nullopt;
  Finding finding;
  const bool nothing = share >= kNothingElse;
  finding.cause = nothing ? Cause::kNothingToFix : Cause::kComputeBound;
  finding.says =
      nothing ? fmt::format("{} of the training time is the model's own compute; the rest is in order", percent(share))
              : fmt::format("The model's compute takes {} of the training time", percent(share));
  finding.evidence.push_back(fmt::format(
      "forward {}, backward {}, optimizer {}{} of the training time", percent(m.phases.share(Phase::kForward)),
      percent(m.phases.share(Phase::kBackward)), percent(m.phases.share(Phase::kOptimizer)),
      m.copies_seen ? ", copies " + percent(m.phases.share(Phase::kCopy)) : ""));
  finding.confidence = confidence_of(m);
  finding.gain = Signal<Gain>::unavailable("depends on the model; try it and compare the two runs");
  if (nothing) {
    finding.fix = "None needed around the model; a faster step can only come from the model itself";
    finding.gain = Signal<Gain>::unavailable("there is no fix to predict for");
  } else if (run.inputs.gpu) {
    finding.fix = "Let the GPU's faster formats do the work";
    finding.fix_line = "with torch.autocast('cuda', dtype=torch.float16):";
  } else {
    finding.fix = "Let the convolutions use the layout that the CPU is fastest with";
    finding.fix_line = "model = model.to(memory_format=torch.channels_last)";
  }
  return finding;
}

}  // namespace stoker::watch
