#include "stoker/watch/verdict.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "watch/verdict/rules.h"

namespace stoker::watch {
namespace {

constexpr double kWorthSaving = 0.04;  // of the training time; below it a finding does not come before compute

std::vector<Finding> ask(Rank rank, const Case& run) {
  std::vector<Finding> found;
  for (const Rule& rule : rules()) {
    if (rule.rank != rank) continue;
    auto finding = rule.find(run);
    if (!finding) continue;
    finding->cause = rule.cause;
    found.push_back(std::move(*finding));
  }
  return found;
}

Finding nothing_stands_out(const Metrics& m) {
  Finding finding;
  finding.cause = "nothing-to-fix";
  finding.says = "No single cause stands out";
  finding.evidence.push_back(
      fmt::format("compute {}, waiting for data {}, evaluation {}, other {} of the training time",
                  percent(compute_share(m.phases)), percent(m.phases.share(Phase::kWait)),
                  percent(m.phases.share(Phase::kEvaluation)), percent(m.phases.share(Phase::kOther))));
  finding.fix = "None";
  finding.gain = Signal<Gain>::unavailable("there is no fix to predict for");
  return finding;
}

Json to_json(const Finding& f) {
  Json evidence = Json::array();
  for (const std::string& line : f.evidence) evidence.push(line);
  Json gain = f.gain ? Json::object({{"value", (*f.gain).points}, {"low", (*f.gain).low}, {"high", (*f.gain).high}})
                     : Json::object({{"value", nullptr}, {"why", f.gain.why}});
  return Json::object({{"cause", f.cause},
                       {"says", f.says},
                       {"evidence", std::move(evidence)},
                       {"confidence", name(f.confidence)},
                       {"fix", f.fix},
                       {"fix_line", f.fix_line},
                       {"gain_points", std::move(gain)},
                       {"gain_of", f.gain_of},
                       {"model", f.model}});
}

}  // namespace

const char* name(Confidence confidence) {
  constexpr const char* kNames[] = {"low", "medium", "high"};
  return kNames[static_cast<std::size_t>(confidence)];
}

Confidence confidence_of(const Metrics& metrics) {
  if (metrics.lost_events > 0 || metrics.steps.size() < 30) return Confidence::kMedium;
  return Confidence::kHigh;
}

double compute_share(const PhaseTimes& phases) {
  return phases.share(Phase::kCopy) + phases.share(Phase::kForward) + phases.share(Phase::kBackward) +
         phases.share(Phase::kOptimizer);
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string milliseconds(double seconds) {
  return format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

Verdict judge(const Metrics& metrics, const VerdictInputs& inputs) {
  const Case run{metrics, inputs};
  if (auto alone = ask(Rank::kAlone, run); !alone.empty()) return {{std::move(alone.front())}};
  Verdict verdict{ask(Rank::kSaving, run)};
  auto& found = verdict.findings;
  std::stable_sort(found.begin(), found.end(),
                   [](const Finding& a, const Finding& b) { return a.saved_s > b.saved_s; });
  const bool first = found.empty() || found.front().saved_s < kWorthSaving * metrics.training_seconds();
  auto compute = ask(Rank::kCompute, run);
  found.insert(first ? found.begin() : found.end(), compute.begin(), compute.end());
  if (found.empty()) found.push_back(nothing_stands_out(metrics));
  return verdict;
}

Json to_json(const Verdict& verdict, const Metrics& metrics, const std::string& written_utc) {
  const Finding& first = verdict.first();
  Json findings = Json::array();
  for (const Finding& one : verdict.findings) findings.push(to_json(one));
  Json out = Json::object({{"schema", "stoker.verdict.v1"},
                           {"written_utc", written_utc},
                           {"binds", first.cause},
                           {"says", first.says},
                           {"step_ms", metrics.loop_s ? Json(*metrics.loop_s * 1e3) : Json()}});
  out.set("predicted_gain_points", first.gain ? Json((*first.gain).points) : Json());
  out.set("predicted_gain_low", first.gain ? Json((*first.gain).low) : Json());
  out.set("predicted_gain_high", first.gain ? Json((*first.gain).high) : Json());
  if (!first.gain) out.set("why_no_prediction", first.gain.why);
  out.set("findings", std::move(findings));
  return out;
}

}  // namespace stoker::watch
