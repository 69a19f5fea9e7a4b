// The result as JSON: microseconds, by the field names of docs/guide/trace.md.
#include "stoker/watch/kineto.h"
#include "watch/kineto/percent.h"

namespace stoker::watch {
namespace {

using kineto::percent;

Json us(std::int64_t ns) { return static_cast<double>(ns) / 1000.0; }

// A number where there is one, else {"value": null, "why": …}.
template <typename T>
Json plain(const Signal<T>& signal) {
  return signal ? Json(*signal) : Json(signal);
}
Json missing(const std::string& why) { return Json(Signal<double>::unavailable(why)); }

Json stream_json(const StreamUse& use) {
  return Json::object({{"stream", use.stream},
                       {"device", use.device},
                       {"count", use.count},
                       {"busy_us", us(use.busy_ns)},
                       {"host_wait_us", us(use.idle.host_wait_ns)},
                       {"kernel_wait_us", us(use.idle.kernel_wait_ns)},
                       {"other_us", us(use.idle.other_ns)}});
}

Json kernel_json(const KernelUse& use) {
  Json streams = Json::array();
  for (const auto& [stream, total] : use.total_ns_by_stream) {
    streams.push(Json::object({{"stream", stream}, {"total_us", us(total)}}));
  }
  return Json::object({{"name", use.name},
                       {"class", name(use.work)},
                       {"count", use.count},
                       {"total_us", us(use.total_ns)},
                       {"min_us", us(use.min_ns)},
                       {"max_us", us(use.max_ns)},
                       {"tensor_cores", use.tensor_cores},
                       {"streams", std::move(streams)}});
}

Json launches_json(const Launches& launches) {
  return Json::object({{"matched", launches.matched},
                       {"unmatched", launches.unmatched},
                       {"shorter_than_launch", launches.shorter_than_launch},
                       {"call_us", us(launches.call_ns)},
                       {"delay_median_us", us(launches.delay_median_ns)},
                       {"delay_p90_us", us(launches.delay_p90_ns)},
                       {"delay_max_us", us(launches.delay_max_ns)}});
}

Json tensor_json(const GpuUse& gpu) {
  if (!gpu.tensor_cores) return Json(Signal<double>::unavailable(gpu.tensor_cores.why));
  return Json::object({{"tensor_us", us((*gpu.tensor_cores).tensor_ns)},
                       {"matrix_us", us((*gpu.tensor_cores).matrix_ns)},
                       {"of_matrix_pct", percent((*gpu.tensor_cores).tensor_ns, (*gpu.tensor_cores).matrix_ns)}});
}

void set_gpu(const GpuUse& gpu, Json& out) {
  Json combinations = Json::object();
  for (const auto& [classes, ns] : gpu.combination_ns) combinations.set(classes, us(ns));
  Json streams = Json::array();
  for (const auto& use : gpu.streams) streams.push(stream_json(use));
  Json kernels = Json::array();
  for (const auto& use : gpu.kernels) kernels.push(kernel_json(use));
  out.set("idle_us", us(gpu.idle_ns));
  out.set("compute_us", us(gpu.compute_ns));
  out.set("non_compute_us", us(gpu.non_compute_ns));
  out.set("kernel_us", us(gpu.span_ns));
  out.set("comm_overlap_pct", plain(gpu.communication_overlap_pct));
  out.set("communication_us", us(gpu.communication_ns));
  out.set("exposed_communication_us", us(gpu.exposed_communication_ns));
  out.set("exposed_communication_pct", percent(gpu.exposed_communication_ns, gpu.span_ns));
  out.set("memory_us", us(gpu.memory_ns));
  out.set("breakdown_us", std::move(combinations));
  out.set("idle_split", Json::object({{"host_wait_us", us(gpu.idle.host_wait_ns)},
                                      {"kernel_wait_us", us(gpu.idle.kernel_wait_ns)},
                                      {"other_us", us(gpu.idle.other_ns)},
                                      {"data_wait_us", us(gpu.data_wait_ns)},
                                      {"launch_bound_us", us(gpu.launch_bound_ns)}}));
  out.set("launch_bound_pct", percent(gpu.launch_bound_ns, gpu.span_ns));
  out.set("launches", launches_json(gpu.launches));
  out.set("tensor_cores", tensor_json(gpu));
  out.set("streams", std::move(streams));
  out.set("kernels", std::move(kernels));
}

void set_no_gpu(const std::string& why, Json& out) {
  for (const char* const field :
       {"idle_us", "compute_us", "non_compute_us", "kernel_us", "comm_overlap_pct", "communication_us",
        "exposed_communication_us", "exposed_communication_pct", "memory_us", "breakdown_us", "idle_split",
        "launch_bound_pct", "launches", "tensor_cores"}) {
    out.set(field, missing(why));
  }
  out.set("streams", Json::array());
  out.set("kernels", Json::array());
}

Json step_json(const KinetoStep& step) {
  return Json::object({{"name", step.name},
                       {"start_us", us(step.start_ns)},
                       {"duration_us", us(step.duration_ns)},
                       {"launched", step.launched},
                       {"gpu_busy_us", us(step.gpu_busy_ns)},
                       {"in_window", step.in_window}});
}

Json op_json(const OpUse& op) {
  return Json::object(
      {{"name", op.name}, {"count", op.count}, {"total_us", us(op.total_ns)}, {"self_us", us(op.self_ns)}});
}

Json memory_json(const MemoryUse& use) {
  Json timeline = Json::array();
  for (const auto& point : use.timeline) {
    timeline.push(Json::object({{"at_us", us(point.at_ns)},
                                {"allocated_bytes", point.allocated_bytes},
                                {"reserved_bytes", point.reserved_bytes}}));
  }
  return Json::object({{"device", use.device},
                       {"events", use.events},
                       {"peak_allocated_bytes", use.peak_allocated_bytes},
                       {"peak_reserved_bytes", use.peak_reserved_bytes},
                       {"timeline", std::move(timeline)}});
}

template <typename T, typename Convert>
Json list_json(const std::vector<T>& values, Convert convert) {
  Json out = Json::array();
  for (const T& value : values) out.push(convert(value));
  return out;
}

Json rank_json(const KinetoRank& rank) {
  Json out = Json::object({{"rank", rank.rank},
                           {"file", rank.file.native()},
                           {"device", plain(rank.device)},
                           {"world_size", plain(rank.world_size)},
                           {"duration_us", us(rank.duration_ns)}});
  if (rank.gpu) {
    set_gpu(*rank.gpu, out);
  } else {
    set_no_gpu(rank.gpu.why, out);
  }
  out.set("window", Json::object({{"steps_seen", rank.window.steps_seen},
                                  {"last_step_left_out", rank.window.last_left_out},
                                  {"work_left_out", rank.window.work_left_out}}));
  out.set("steps", list_json(rank.steps, step_json));
  out.set("ops", list_json(rank.ops, op_json));
  out.set("memory", list_json(rank.memory, memory_json));
  out.set("text_bytes", rank.text_bytes);
  out.set("events_seen", rank.events_seen);
  out.set("events_kept", rank.events_kept);
  out.set("table_bytes", rank.table_bytes);
  out.set("problems", list_json(rank.problems, [](const std::string& problem) { return Json(problem); }));
  return out;
}

Json finding_json(const Finding& finding) {
  return Json::object({{"cause", finding.cause},
                       {"says", finding.says},
                       {"evidence", list_json(finding.evidence, [](const std::string& line) { return Json(line); })},
                       {"confidence", name(finding.confidence)},
                       {"fix", finding.fix},
                       {"fix_line", finding.fix_line},
                       {"lost_s", finding.saved_s}});
}

}  // namespace

Json to_json(const std::vector<KinetoRank>& ranks, const std::vector<Finding>& findings) {
  return Json::object({{"schema", "stoker.trace.v1"},
                       {"ranks", list_json(ranks, rank_json)},
                       {"verdict", findings.empty() ? Json() : Json(findings.front().cause)},
                       {"findings", list_json(findings, finding_json)}});
}

}  // namespace stoker::watch
