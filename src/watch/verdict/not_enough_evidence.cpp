// Too few steps for an average to mean something.
#include <fmt/format.h>

#include "watch/verdict/rules.h"

namespace stoker::watch {
namespace {

constexpr std::size_t kLeastSteps = 10;

}  // namespace

std::optional<Finding> not_enough_evidence(const Case& run) {
  const std::size_t steps = run.metrics.steps.size();
  if (steps >= kLeastSteps && run.metrics.loop_s) return std::nullopt;
  Finding finding;
  finding.says = steps == 0 ? std::string("Not enough evidence: no optimizer step was seen")
                            : fmt::format("Not enough evidence: {} steps, a verdict needs {}", steps, kLeastSteps);
  finding.evidence.push_back(fmt::format("{:.3g} s of training were recorded", run.metrics.training_seconds()));
  finding.confidence = Confidence::kLow;
  finding.fix = steps == 0 ? "Record a run that trains" : "Let the run go on for more steps";
  finding.fix_line = "stoker run -- python train.py";
  finding.gain = Signal<Gain>::unavailable("not enough steps");
  return finding;
}

}  // namespace stoker::watch
