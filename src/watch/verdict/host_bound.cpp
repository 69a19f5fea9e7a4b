// Host-bound: the main thread is busy between the parts that train: Python, logging, garbage collection, copies.
#include <fmt/format.h>

#include "watch/verdict/rules.h"

namespace stoker::watch {
namespace {

constexpr double kHostShare = 0.20;  // of the loop
constexpr double kGcShare = 0.05;    // of the loop, from which the collector is named
constexpr double kSaved = 0.5;       // of the time between, that a person finds to remove

}  // namespace

std::optional<Finding> host_bound(const Case& run) {
  const Metrics& m = run.metrics;
  const double other = m.loop_phases.share(Phase::kOther);
  const double gc = m.loop_phases.share(Phase::kGc);
  if (other + gc < kHostShare && gc < kGcShare) return std::nullopt;
  Finding finding;
  finding.says =
      fmt::format("{} of the loop goes to Python outside the model, the optimizer and the loader", percent(other + gc));
  finding.evidence.push_back(fmt::format(
      "of an average step of {}, {} lies in no recorded call and {} in garbage collection", milliseconds(*m.loop_s),
      milliseconds(m.loop_phases[Phase::kOther]), milliseconds(m.loop_phases[Phase::kGc])));
  if (run.inputs.gpu && !m.copies_seen) {
    finding.evidence.push_back("copies to the GPU are not hooked and may be in it");
  }
  finding.confidence = Confidence::kMedium;
  const double steps = static_cast<double>(m.steps.size());
  if (gc >= kGcShare && gc > other / 2) {
    finding.fix = "Freeze what is alive before the loop, and collect once an epoch";
    finding.fix_line = "import gc; gc.collect(); gc.freeze(); gc.disable()  # and gc.collect() after each epoch";
    finding.gain = Gain{100 * gc * 0.9, 100 * gc * 0.5, 100 * gc};
    finding.saved_s = m.loop_phases[Phase::kGc] * 0.9 * steps;
  } else {
    finding.fix =
        "Look between the calls: print and .item() each step, metrics on the CPU, logging; do them every 50 steps";
    finding.fix_line = "if step % 50 == 0: print(step, loss.item())";
    finding.gain = Gain{100 * other * kSaved, 0, 100 * other * 0.9};
    finding.saved_s = m.loop_phases[Phase::kOther] * kSaved * steps;
  }
  return finding;
}

}  // namespace stoker::watch
