#include <algorithm>
#include <cmath>
#include <numeric>

#include "stoker/watch/metrics.h"

namespace stoker::watch {
namespace {

struct Words {
  const char* name;
  const char* title;
};

constexpr std::array<Words, kPhaseCount> kWords = {{
    {"wait", "wait for data"},
    {"loader_start", "loader start"},
    {"copy", "copy to device"},
    {"forward", "forward"},
    {"backward", "backward"},
    {"optimizer", "optimizer"},
    {"checkpoint", "checkpoint"},
    {"evaluation", "evaluation"},
    {"compile", "compile"},
    {"gc", "garbage collection"},
    {"other", "other"},
}};

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

const char* name(Phase phase) { return kWords[static_cast<std::size_t>(phase)].name; }
const char* title(Phase phase) { return kWords[static_cast<std::size_t>(phase)].title; }

double PhaseTimes::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

double PhaseTimes::share(Phase phase) const {
  const double all = total();
  return all > 0 ? (*this)[phase] / all : 0;
}

std::array<int, kPhaseCount> PhaseTimes::per_mille() const {
  std::array<int, kPhaseCount> rounded{};
  if (total() <= 0) return rounded;
  std::array<std::size_t, kPhaseCount> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto exact = [&](std::size_t i) { return 1000 * share(static_cast<Phase>(i)); };
  int missing = 1000;
  for (std::size_t i = 0; i < kPhaseCount; ++i) missing -= rounded[i] = static_cast<int>(exact(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return exact(a) - rounded[a] > exact(b) - rounded[b]; });
  for (std::size_t i = 0; missing > 0; --missing, ++i) ++rounded[order[i % kPhaseCount]];
  return rounded;
}

double Step::seconds() const { return phases.total() - phases[Phase::kEvaluation] - phases[Phase::kCheckpoint]; }

double Step::compute_seconds() const {
  return phases[Phase::kCopy] + phases[Phase::kForward] + phases[Phase::kBackward] + phases[Phase::kOptimizer];
}

bool Step::steady() const {
  return !first && !first_of_epoch && phases[Phase::kEvaluation] == 0 && phases[Phase::kCheckpoint] == 0 &&
         phases[Phase::kCompile] == 0;
}

Distribution distribution(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return {.count = values.size(),
          .mean = mean,
          .min = values.front(),
          .p50 = quantile(values, 0.50),
          .p90 = quantile(values, 0.90),
          .p95 = quantile(values, 0.95),
          .p99 = quantile(values, 0.99),
          .max = values.back()};
}

}  // namespace stoker::watch
