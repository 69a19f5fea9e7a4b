#include <algorithm>
#include <cmath>
#include <iterator>

#include "stoker/watch/report.h"
#include "watch/report/series.h"

namespace stoker::watch {
namespace {

// What a hook and the writing of its event cost, as bench/overhead.py finds it on a slow core. It labels an estimate.
constexpr double kEventSeconds = 1.5e-6;

Json run_facts(const RunData& data, double seconds) {
  Json facts = Json::object();
  for (const char* key : {"run_id", "name", "command", "cwd", "started_utc", "ended_utc", "python", "machine",
                          "accelerate", "loaders", "exception"}) {
    if (data.run.has(key)) facts.set(key, data.run[key]);
  }
  facts.set("seconds", seconds);
  return facts;
}

Json outcome(const RunData& data, double seconds) {
  Json out = data.run["outcome"];
  out.set("says", outcome_in_words(data.run, seconds));
  return out;
}

// Measured by on/off blocks of the run itself, if it did so; else from the number of events.
Json overhead(const RunData& data, const Metrics& metrics) {
  if (data.run["overhead"].is_object()) return data.run["overhead"];
  if (metrics.training_seconds() <= 0) {
    return Json::object({{"value", nullptr}, {"why", "nothing trained"}});
  }
  const auto events = 2 * static_cast<double>(data.spans.size()) + static_cast<double>(data.instants.size());
  return Json::object({{"value", events * kEventSeconds / metrics.training_seconds()},
                       {"estimate", true},
                       {"how", "events times 1.5 µs, over the training time"}});
}

// What could not be read: as the recorder noted it, and each figure that the metrics lack.
Json signals(const RunData& data, const Metrics& metrics) {
  Json list = Json::array();
  const auto add = [&](const std::string& name, bool there, const std::string& why) {
    for (const Json& one : list.items()) {
      if (one["name"].as_string() == name) return;
    }
    list.push(Json::object({{"name", name}, {"available", there}, {"why", there ? Json() : Json(why)}}));
  };
  const Json& python = data.run["python"];
  if (python.is_object()) add("hooks", python["recorded"].as_bool(), python["why"].as_string());
  for (const auto& [name, value] : data.run["signals"].members()) {
    add(name, !value["value"].is_null(), value["why"].as_string());
  }
  const auto figure = [&](const char* name, const Signal<double>& signal) { add(name, bool(signal), signal.why); };
  figure("cpu.trainee", metrics.cpu.trainee);
  figure("cpu.workers", metrics.cpu.workers);
  figure("cpu.limit", metrics.cpu.limit);
  figure("memory.used", metrics.memory_peak_bytes);
  figure("memory.limit", metrics.memory_limit_bytes);
  figure("gpu.idle", metrics.gpu_idle_share);
  if (inputs_from(data).gpu) add("copies", metrics.copies_seen, "not hooked: their time lies in other phases");
  figure("batch sizes", metrics.samples_per_s);
  figure("checkpoint speed", metrics.checkpoint_mb_per_s);
  figure("import time", metrics.milestones.import_done);
  if (data.lost_events > 0) {
    add("all events", false, std::to_string(data.lost_events) + " were overwritten before they were read");
  }
  if (data.bad_bytes > 0) {
    add("the trace's end", false, std::to_string(data.bad_bytes) + " bytes after its last whole frame");
  }
  return list;
}

}  // namespace

Json make_report(const RunData& data, const Metrics& metrics, const Json& verdict) {
  const double seconds =
      data.last_ns > metrics.start_ns ? static_cast<double>(data.last_ns - metrics.start_ns) / 1e9 : 0;
  Json report = Json::object({{"schema", "stoker.report.v1"}, {"stoker_version", STOKER_VERSION}});
  report.set("run", run_facts(data, seconds));
  report.set("outcome", outcome(data, seconds));
  report.set("verdict", verdict);
  report.set("metrics", to_json(metrics));
  report.set("timeline", step_series(metrics));
  report.set("epochs", epoch_marks(metrics));
  report.set("waits", wait_histogram(metrics));
  report.set("curves", curves(data, metrics));
  report.set("signals", signals(data, metrics));
  report.set("overhead", overhead(data, metrics));
  if (data.run.has("comparison")) report.set("comparison", data.run["comparison"]);
  return report;
}

}  // namespace stoker::watch
