// Every cause that a verdict may name. Order matters only between findings that save the same.
#include "watch/verdict/rules.h"

namespace stoker::watch {

std::optional<Finding> not_enough_evidence(const Case& run);
std::optional<Finding> data_bound(const Case& run);
std::optional<Finding> evaluation_bound(const Case& run);
std::optional<Finding> checkpoint_bound(const Case& run);
std::optional<Finding> host_bound(const Case& run);
std::optional<Finding> nothing_to_fix(const Case& run);
std::optional<Finding> compute_bound(const Case& run);

std::span<const Rule> rules() {
  static constexpr Rule kRules[] = {
      {"not-enough-evidence", not_enough_evidence, Rank::kAlone, "reasoned: the mean of ten steps"},
      {"data-bound", data_bound, Rank::kSaving, "reasoned, and the step model of docs/design/verdict.md"},
      {"evaluation-bound", evaluation_bound, Rank::kSaving, "reasoned: a quarter of the time"},
      {"checkpoint-bound", checkpoint_bound, Rank::kSaving, "the Store's bar, 1/3 of torch.save's blocked time"},
      {"host-bound", host_bound, Rank::kSaving, "reasoned: a fifth of the loop"},
      {"nothing-to-fix", nothing_to_fix, Rank::kCompute, "reasoned: 15 % are left for all other causes"},
      {"compute-bound", compute_bound, Rank::kCompute, "reasoned: half of the time"},
  };
  return kRules;
}

}  // namespace stoker::watch
