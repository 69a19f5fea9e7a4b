#include "run_report.h"

#include "loader_rate.h"
#include "stoker/base/clock.h"
#include "stoker/base/files.h"
#include "stoker/base/run_directory.h"
#include "stoker/watch/recorder.h"
#include "stoker/watch/report.h"

namespace stoker::cli {
namespace {

// Writes metrics and verdict beside what the recorder wrote. A folder that cannot be written is no reason to say
// nothing.
Json judge_now(const std::filesystem::path& run, const watch::RunData& data, const watch::Metrics& metrics) {
  watch::VerdictInputs inputs = watch::inputs_from(data);
  if (!inputs.accelerated && metrics.loop_s) inputs.stoker_images_per_cpu_second = measure_loader_rate(data.run);
  const Json verdict = watch::to_json(watch::judge(metrics, inputs), metrics, utc_iso(Clock::real().wall()));
  const std::string& kind = data.run["outcome"]["kind"].as_string();
  if (kind == "running") return verdict;
  Json json = data.run;
  json.set("metrics", watch::to_json(metrics));
  json.set("verdict", verdict);
  (void)write_run_json(FileSystem::real(), run, json);
  return verdict;
}

}  // namespace

Result<Json> report_of(const std::filesystem::path& run) {
  if (auto recovered = watch::recover_run(run); !recovered) return recovered.error();
  auto data = watch::read_run(run);
  if (!data) return data.error();
  const watch::Metrics metrics = watch::measure(*data);
  const bool judged = data->run["verdict"]["findings"].is_array();
  return watch::make_report(*data, metrics, judged ? data->run["verdict"] : judge_now(run, *data, metrics));
}

Result<Json> compare_runs(const std::filesystem::path& before, const std::filesystem::path& after) {
  auto first = report_of(before);
  if (!first) return first.error();
  auto second = report_of(after);
  if (!second) return second.error();
  auto comparison = watch::compare_reports(*first, *second);
  if (!comparison) return comparison.error();
  auto json = read_run_json(FileSystem::real(), after);
  if (!json) return json.error();
  json->set("comparison", *comparison);
  STOKER_TRY(write_run_json(FileSystem::real(), after, *json));
  return comparison;
}

}  // namespace stoker::cli
