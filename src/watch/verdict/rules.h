// One rule a file. A rule reads metrics and inputs only, and answers when its cause is there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "stoker/watch/verdict.h"

namespace stoker::watch {

struct Case {
  const Metrics& metrics;
  const VerdictInputs& inputs;
};

// When a rule's finding comes first.
enum class Rank : std::uint8_t {
  kAlone,    // where it answers, no other rule is asked
  kSaving,   // ordered by the seconds that the fix saves
  kCompute,  // before the others where none of them saves enough to matter, else after them
};

struct Rule {
  const char* cause;                                // its id in JSON and in docs/design/verdict.md
  std::optional<Finding> (*find)(const Case& run);  // says everything but the cause
  Rank rank;
  const char* source;  // where its thresholds come from
};

// All of them; at most one answer a rule. A new cause is a file with its function, and a line in rules.cpp.
std::span<const Rule> rules();

// By the number of steps that an average rests on.
Confidence confidence_of(const Metrics& metrics);
// Copy, forward, backward and optimizer.
double compute_share(const PhaseTimes& phases);
std::string percent(double share);  // 0.423 → "42 %"
std::string milliseconds(double seconds);

}  // namespace stoker::watch
