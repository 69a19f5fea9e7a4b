// Did the fix keep the promise? Step times of two runs, the measured gain, and the prediction made before the second.
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/watch/report.h"

namespace stoker::watch {
namespace {

std::string duration(double ms) {
  return format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(ms * 1e6)));
}

Status has_steps(const Json& report) {
  const Json& step = report["metrics"]["loop_step_ms"];
  if (step["value"].is_number() && step["value"].as_double() > 0) return {};
  return Error{ErrorCode::kBadInput,
               fmt::format("run {} has no step time to compare: {}", report["run"]["run_id"].as_string(),
                           step["why"].as_string()),
               "record a run of two steps or more"};
}

// Gain of the step time before that the verdict predicts; null with the reason where it does not.
Json prediction(const Json& verdict) {
  const Json& first = verdict["findings"].items().empty() ? verdict : verdict["findings"].items()[0];
  if (!verdict["predicted_gain_points"].is_number()) {
    const std::string& why = verdict["why_no_prediction"].as_string();
    return Json::object({{"points", nullptr}, {"why", why.empty() ? "the first run's file holds no prediction" : why}});
  }
  return Json::object({{"points", verdict["predicted_gain_points"]},
                       {"low", verdict["predicted_gain_low"]},
                       {"high", verdict["predicted_gain_high"]},
                       {"of", first["gain_of"]},
                       {"fix_line", first["fix_line"]},
                       {"written_utc", verdict["written_utc"]}});
}

Json side(const Json& report) {
  const Json& m = report["metrics"];
  return Json::object({{"run_id", report["run"]["run_id"]},
                       {"step_ms", m["loop_step_ms"]["value"]},
                       {"samples_per_second", m["samples_per_second"]["value"]},
                       {"phases", m["loop_phases"]},
                       {"cpu_cores", m["cpu_cores"]}});
}

}  // namespace

Result<Json> compare_reports(const Json& before, const Json& after) {
  STOKER_TRY(has_steps(before));
  STOKER_TRY(has_steps(after));
  const double from = before["metrics"]["loop_step_ms"]["value"].as_double();
  const double to = after["metrics"]["loop_step_ms"]["value"].as_double();
  const double measured = 100 * (1 - to / from);
  Json out = Json::object({{"schema", "stoker.comparison.v1"}, {"before", side(before)}, {"after", side(after)}});
  out.set("measured_gain_points", measured);
  const Json predicted = prediction(before["verdict"]);
  out.set("predicted", predicted);
  const bool comparable = predicted["points"].is_number() && predicted["of"].as_string() != "training time";
  if (comparable) {
    out.set("miss_points", std::abs(measured - predicted["points"].as_double()));
    out.set("within_interval", measured >= predicted["low"].as_double() && measured <= predicted["high"].as_double());
  } else {
    out.set("miss_points", nullptr);
  }
  return out;
}

std::vector<std::string> terminal_comparison(const Json& c) {
  const double before = c["before"]["step_ms"].as_double();
  const double after = c["after"]["step_ms"].as_double();
  std::vector<std::string> lines;
  lines.push_back(fmt::format("before  {:>9} a step   {}", duration(before), c["before"]["run_id"].as_string()));
  lines.push_back(fmt::format("after   {:>9} a step   {}", duration(after), c["after"]["run_id"].as_string()));
  lines.push_back(fmt::format("measured gain  {:.0f} % of the step time ({:.2f} times as fast)",
                              c["measured_gain_points"].as_double(), after > 0 ? before / after : 0));
  const Json& predicted = c["predicted"];
  if (!predicted["points"].is_number()) {
    lines.push_back("predicted gain unavailable: " + predicted["why"].as_string());
    return lines;
  }
  lines.push_back(fmt::format("predicted gain {:.0f} % of the {} ({:.0f} to {:.0f}), written {}",
                              predicted["points"].as_double(), predicted["of"].as_string(),
                              predicted["low"].as_double(), predicted["high"].as_double(),
                              predicted["written_utc"].as_string()));
  if (c["miss_points"].is_number())
    lines.push_back(fmt::format("the miss: {:.0f} points", c["miss_points"].as_double()));
  return lines;
}

}  // namespace stoker::watch
