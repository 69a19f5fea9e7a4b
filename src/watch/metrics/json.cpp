#include "stoker/watch/metrics.h"

namespace stoker::watch {
namespace {

Json milliseconds(const Distribution& d) {
  if (d.count == 0) return Json::object({{"count", 0}});
  return Json::object({{"count", d.count},
                       {"mean", d.mean * 1e3},
                       {"min", d.min * 1e3},
                       {"p50", d.p50 * 1e3},
                       {"p90", d.p90 * 1e3},
                       {"p95", d.p95 * 1e3},
                       {"p99", d.p99 * 1e3},
                       {"max", d.max * 1e3}});
}

Json phase_list(const Metrics& metrics, const PhaseTimes& phases) {
  Json list = Json::array();
  const auto per_mille = phases.per_mille();
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (!metrics.shows(phase)) continue;
    list.push(Json::object({{"name", name(phase)},
                            {"title", title(phase)},
                            {"seconds", phases[phase]},
                            {"share", phases.share(phase)},
                            {"percent", per_mille[i] / 10.0}}));
  }
  return list;
}

Json epoch_list(const Metrics& metrics) {
  Json list = Json::array();
  for (const Epoch& epoch : metrics.epochs) {
    Json phases = Json::object();
    for (std::size_t i = 0; i < kPhaseCount; ++i) {
      const auto phase = static_cast<Phase>(i);
      if (metrics.shows(phase)) phases.set(name(phase), epoch.phases[phase]);
    }
    list.push(Json::object({{"seconds", epoch.seconds()},
                            {"steps", epoch.steps},
                            {"samples", epoch.samples},
                            {"first_batch_ms", epoch.first_batch_s * 1e3},
                            {"phase_seconds", std::move(phases)}}));
  }
  return list;
}

Signal<double> scaled(const Signal<double>& signal, double factor) {
  return signal ? Signal<double>(*signal * factor) : signal;
}

}  // namespace

Json to_json(const Metrics& m) {
  double checkpoint_s = 0;
  std::size_t by_store = 0;
  for (const Checkpoint& one : m.checkpoints) {
    checkpoint_s += one.seconds;
    by_store += one.by_store ? 1 : 0;
  }
  return Json::object({
      {"schema", "stoker.metrics.v1"},
      {"training_seconds", m.training_seconds()},
      {"phases", phase_list(m, m.phases)},
      {"steps", m.steps.size()},
      {"steady_steps", m.steady_steps()},
      {"step_ms", milliseconds(m.step_s)},
      {"loop_step_ms", scaled(m.loop_s, 1e3)},
      {"loop_phases", phase_list(m, m.loop_phases)},
      {"samples_per_second", m.samples_per_s},
      {"samples_per_step", m.samples_per_step},
      {"data_wait_ms", milliseconds(m.wait_s)},
      {"first_batch_ms", milliseconds(m.first_batch_s)},
      {"epochs", epoch_list(m)},
      {"evaluation_wait_seconds", m.evaluation_wait_s},
      {"checkpoints", Json::object({{"count", m.checkpoints.size()},
                                    {"by_store", by_store},
                                    {"seconds", checkpoint_s},
                                    {"mb_per_second", m.checkpoint_mb_per_s}})},
      {"cpu_cores", Json::object({{"trainee", m.cpu.trainee}, {"workers", m.cpu.workers}, {"limit", m.cpu.limit}})},
      {"memory_peak_bytes", m.memory_peak_bytes},
      {"memory_limit_bytes", m.memory_limit_bytes},
      {"gpu_idle_share", m.gpu_idle_share},
      {"seconds_from_start", Json::object({{"import_done", m.milestones.import_done},
                                           {"first_batch", m.milestones.first_batch},
                                           {"first_step", m.milestones.first_step},
                                           {"first_epoch", m.milestones.first_epoch},
                                           {"end", m.milestones.end}})},
      {"lost_events", m.lost_events},
  });
}

}  // namespace stoker::watch
