// One rule a file. A rule reads metrics and inputs only, and answers when its cause is there.
#pragma once

#include <optional>

#include "stoker/watch/verdict.h"

namespace stoker::watch {

struct Case {
  const Metrics& metrics;
  const VerdictInputs& inputs;
};

std::optional<Finding> not_enough_evidence(const Case& run);
std::optional<Finding> data_bound(const Case& run);
std::optional<Finding> checkpoint_bound(const Case& run);
std::optional<Finding> evaluation_bound(const Case& run);
std::optional<Finding> host_bound(const Case& run);
std::optional<Finding> compute_bound(const Case& run);  // "nothing to fix" where compute is nearly all

// By the number of steps that an average rests on.
Confidence confidence_of(const Metrics& metrics);
// Copy, forward, backward and optimizer.
double compute_share(const PhaseTimes& phases);
std::string percent(double share);  // 0.423 → "42 %"
std::string milliseconds(double seconds);

}  // namespace stoker::watch
