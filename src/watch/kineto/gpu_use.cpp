// Figures over the selected GPU work: the breakdown, the idle splits, the kernel table, the launches.
#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "watch/kineto/gpu_work.h"

namespace stoker::watch::kineto {
namespace {

constexpr std::int64_t kKernelWaitBelowNs = 30'000;  // HTA's consecutive_kernel_delay, 30 of its microseconds
constexpr std::array kClasses = {WorkClass::kCompute, WorkClass::kCommunication, WorkClass::kMemory};

std::size_t index_of(WorkClass work) { return static_cast<std::size_t>(work); }

void count_gap(IdleSplit& idle, const Work& next, std::int64_t idle_since_ns) {
  const std::int64_t gap = next.start_ns - idle_since_ns;
  if (gap <= 0) return;
  if (next.has_launch && next.launch_ns > idle_since_ns) {
    add_ns(idle.host_wait_ns, gap);
  } else if (gap < kKernelWaitBelowNs) {
    add_ns(idle.kernel_wait_ns, gap);
  } else {
    add_ns(idle.other_ns, gap);
  }
}

// Which classes run together, for how long: the sweep over the merged stretches of each class.
std::map<std::string, std::int64_t> combinations(const std::array<Stretches, 3>& of_class) {
  struct Edge {
    std::int64_t at_ns;
    unsigned flips;
  };
  std::vector<Edge> edges;
  for (std::size_t c = 0; c < of_class.size(); ++c) {
    for (const Stretch& stretch : of_class[c]) {
      edges.push_back({stretch.start_ns, 1U << c});
      edges.push_back({stretch.end_ns, 1U << c});
    }
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at_ns < b.at_ns; });
  std::array<std::int64_t, 8> time{};
  unsigned running = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (i > 0) add_ns(time[running], edges[i].at_ns - edges[i - 1].at_ns);
    running ^= edges[i].flips;
  }
  std::map<std::string, std::int64_t> out;
  for (unsigned set = 1; set < time.size(); ++set) {
    std::string key;
    for (std::size_t c = 0; c < kClasses.size(); ++c) {
      if ((set >> c & 1U) != 0) key += (key.empty() ? "" : "+") + std::string(name(kClasses[c]));
    }
    if (time[set] > 0) out[key] = time[set];
  }
  return out;
}

// What the host did, over all its threads.
struct HostTime {
  Stretches loader;  // waiting for a DataLoader
  Stretches ops;     // at least one operator
};

HostTime host_time(const TraceText& trace) {
  std::vector<Stretch> loader;
  std::vector<Stretch> ops;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != Kind::kOp && event.kind != Kind::kAnnotation) continue;
    if (is_loader_wait(trace.names[event.name])) {
      loader.push_back({event.start_ns, event.end_ns()});
    } else if (event.kind == Kind::kOp) {
      ops.push_back({event.start_ns, event.end_ns()});
    }
  }
  return {merged(std::move(loader)), merged(std::move(ops))};
}

void split_host_wait(const TraceText& trace, const GpuWork& work, GpuUse& out) {
  Stretches waits;
  std::int64_t busy_until = work.pieces.front().start_ns;
  for (const Work& piece : work.pieces) {
    count_gap(out.idle, piece, busy_until);
    if (piece.start_ns > busy_until && piece.has_launch && piece.launch_ns > busy_until) {
      waits.push_back({busy_until, piece.start_ns});
    }
    busy_until = std::max(busy_until, piece.end_ns);
  }
  const HostTime host = host_time(trace);
  out.data_wait_ns = common_ns(waits, host.loader);
  out.launch_bound_ns = common_ns(without(waits, host.loader), host.ops);
}

void measure_time(const GpuWork& work, GpuUse& out) {
  std::array<std::vector<Stretch>, 3> any;
  std::vector<Stretch> all;
  all.reserve(work.pieces.size());
  for (const Work& piece : work.pieces) {
    any[index_of(piece.work)].push_back({piece.start_ns, piece.end_ns});
    all.push_back({piece.start_ns, piece.end_ns});
  }
  std::array<Stretches, 3> of_class;
  for (std::size_t c = 0; c < any.size(); ++c) of_class[c] = merged(std::move(any[c]));
  const Stretches busy = merged(std::move(all));

  std::int64_t last_end = INT64_MIN;
  for (const Work& piece : work.pieces) last_end = std::max(last_end, piece.end_ns);
  out.span_ns = last_end - work.pieces.front().start_ns;
  out.idle_ns = out.span_ns - length_ns(busy);
  out.compute_ns = length_ns(of_class[index_of(WorkClass::kCompute)]);
  out.non_compute_ns = out.span_ns - out.idle_ns - out.compute_ns;
  const Stretches& communication = of_class[index_of(WorkClass::kCommunication)];
  out.communication_ns = length_ns(communication);
  out.memory_ns = length_ns(of_class[index_of(WorkClass::kMemory)]);
  const std::int64_t hidden = common_ns(communication, of_class[index_of(WorkClass::kCompute)]);
  out.exposed_communication_ns = out.communication_ns - hidden;
  if (out.communication_ns > 0) {
    out.communication_overlap_pct = 100.0 * static_cast<double>(hidden) / static_cast<double>(out.communication_ns);
  }
  out.combination_ns = combinations(of_class);
}

void measure_streams(const TraceText& trace, const GpuWork& work, GpuUse& out) {
  struct State {
    StreamUse use;
    std::int64_t busy_until = 0;
  };
  std::map<Lanes::Lane, State> streams;
  for (const Work& piece : work.pieces) {
    const Lanes::Lane& lane = trace.lanes[piece.lane];
    const auto [place, is_new] = streams.try_emplace(lane);
    State& state = place->second;
    if (is_new) state.busy_until = piece.start_ns;
    ++state.use.count;
    count_gap(state.use.idle, piece, state.busy_until);
    if (piece.end_ns > state.busy_until) {
      add_ns(state.use.busy_ns, piece.end_ns - std::max(piece.start_ns, state.busy_until));
      state.busy_until = piece.end_ns;
    }
  }
  for (auto& [lane, state] : streams) {
    state.use.device = lane.first;
    state.use.stream = lane.second;
    out.streams.push_back(state.use);
  }
}

void measure_kernels(const TraceText& trace, const GpuWork& work, GpuUse& out) {
  // One name may stand for a kernel and, in odd traces, for a copy: the class is part of the key.
  std::unordered_map<std::uint64_t, std::size_t> places;
  for (const Work& piece : work.pieces) {
    const std::uint64_t key = std::uint64_t{piece.name} * kClasses.size() + index_of(piece.work);
    const auto [place, is_new] = places.emplace(key, out.kernels.size());
    if (is_new) {
      KernelUse fresh;
      fresh.name = trace.names[piece.name];
      fresh.work = piece.work;
      fresh.tensor_cores = piece.work == WorkClass::kCompute && uses_tensor_cores(fresh.name);
      fresh.min_ns = piece.duration_ns();
      out.kernels.push_back(std::move(fresh));
    }
    KernelUse& kernel = out.kernels[place->second];
    if (piece.work == WorkClass::kMemory && kernel.name.find("Pageable") != std::string::npos) {
      add_ns(out.pageable_copy_ns, piece.duration_ns());
    }
    ++kernel.count;
    add_ns(kernel.total_ns, piece.duration_ns());
    add_ns(kernel.total_ns_by_stream[trace.lanes[piece.lane].second], piece.duration_ns());
    kernel.min_ns = std::min(kernel.min_ns, piece.duration_ns());
    kernel.max_ns = std::max(kernel.max_ns, piece.duration_ns());
  }
  std::sort(out.kernels.begin(), out.kernels.end(), [](const KernelUse& a, const KernelUse& b) {
    return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.name < b.name;
  });
}

void measure_launches(const GpuWork& work, Launches& out) {
  std::vector<std::int64_t> delays;
  for (const Work& piece : work.pieces) {
    if (!piece.has_launch) {
      ++out.unmatched;
      continue;
    }
    ++out.matched;
    add_ns(out.call_ns, piece.call_ns);
    if (piece.duration_ns() < piece.call_ns) ++out.shorter_than_launch;
    delays.push_back(piece.start_ns - piece.launch_ns);
  }
  if (delays.empty()) return;
  std::sort(delays.begin(), delays.end());
  out.delay_median_ns = delays[(delays.size() - 1) / 2];
  out.delay_p90_ns = delays[(delays.size() - 1) * 9 / 10];
  out.delay_max_ns = delays.back();
}

// Volta (7.0) has them first; AMD's matrix cores have other kernel names.
void measure_tensor_cores(const TraceText& trace, GpuUse& out) {
  if (trace.devices.items().empty()) return;
  std::int64_t newest = 0;
  for (const Json& device : trace.devices.items()) {
    const std::string& device_name = device["name"].as_string();
    if (device_name.starts_with("AMD") || device["warpSize"].as_int() == 64) {
      out.tensor_cores = Signal<TensorCoreUse>::unavailable("an AMD device; its kernel names do not tell");
      return;
    }
    newest = std::max(newest, device["computeMajor"].as_int());
  }
  if (newest < 7) {
    out.tensor_cores = Signal<TensorCoreUse>::unavailable("the device has no Tensor Cores (capability below 7.0)");
    return;
  }
  out.tensor_cores = tensor_core_use(out.kernels);
}

}  // namespace

Signal<GpuUse> measure_gpu(const TraceText& trace, const GpuWork& work) {
  if (work.pieces.empty()) {
    return Signal<GpuUse>::unavailable(work.window.work_left_out > 0
                                           ? "no work on a GPU was launched before the last profiler step"
                                           : "no work on a GPU in the trace");
  }
  GpuUse out;
  out.count = work.pieces.size();
  measure_time(work, out);
  split_host_wait(trace, work, out);
  measure_streams(trace, work, out);
  measure_kernels(trace, work, out);
  measure_launches(work, out.launches);
  measure_tensor_cores(trace, out);
  return out;
}

}  // namespace stoker::watch::kineto
