#include "watch/kineto/gpu_work.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace stoker::watch::kineto {
namespace {

constexpr std::string_view kStepName = "ProfilerStep";

// A call on the host that put something on a GPU, by the number that both events carry.
struct Launch {
  std::int64_t correlation = 0;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
};

// Sorted by correlation, then start: of several calls with one number the last is taken, as nearest to the work.
std::vector<Launch> launches_of(const TraceText& trace) {
  std::vector<Launch> launches;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != Kind::kRuntime || event.correlation == kNoCorrelation) continue;
    launches.push_back({event.correlation, event.start_ns, event.duration_ns});
  }
  std::sort(launches.begin(), launches.end(), [](const Launch& a, const Launch& b) {
    return a.correlation != b.correlation ? a.correlation < b.correlation : a.start_ns < b.start_ns;
  });
  return launches;
}

const Launch* find(const std::vector<Launch>& launches, std::int64_t correlation) {
  const auto after =
      std::upper_bound(launches.begin(), launches.end(), correlation,
                       [](std::int64_t value, const Launch& launch) { return value < launch.correlation; });
  if (after == launches.begin() || (after - 1)->correlation != correlation) return nullptr;
  return &*(after - 1);
}

void read_window(const TraceText& trace, GpuWork& out) {
  std::unordered_set<std::uint32_t> names;
  std::int64_t latest = INT64_MIN;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != Kind::kAnnotation || !trace.names[event.name].starts_with(kStepName)) continue;
    names.insert(event.name);
    latest = std::max(latest, event.start_ns);
  }
  out.window.steps_seen = names.size();
  out.window.last_left_out = names.size() > 1;
  if (out.window.last_left_out) out.last_step_start_ns = latest;
}

}  // namespace

WorkClass class_of(Kind kind, std::string_view name) {
  if (name.starts_with("nccl") && name.find("Kernel") != std::string_view::npos) return WorkClass::kCommunication;
  if (kind != Kind::kKernel || name.starts_with("Memcpy") || name.starts_with("Memset") || name.starts_with("dma")) {
    return WorkClass::kMemory;
  }
  return WorkClass::kCompute;
}

GpuWork select_work(const TraceText& trace) {
  GpuWork out;
  read_window(trace, out);
  const std::vector<Launch> launches = launches_of(trace);
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (!is_gpu_work(event.kind)) continue;
    Work work;
    work.start_ns = event.start_ns;
    work.end_ns = event.end_ns();
    work.name = event.name;
    work.lane = event.lane;
    work.work = class_of(event.kind, trace.names[event.name]);
    work.place = i;
    if (const Launch* launch = event.correlation == kNoCorrelation ? nullptr : find(launches, event.correlation)) {
      work.has_launch = true;
      work.launch_ns = launch->start_ns;
      work.call_ns = launch->duration_ns;
    }
    // Work without a launch can not be put into a step.
    if (out.window.last_left_out && (!work.has_launch || work.launch_ns >= out.last_step_start_ns)) {
      ++out.window.work_left_out;
      continue;
    }
    out.pieces.push_back(work);
  }
  std::sort(out.pieces.begin(), out.pieces.end(), [](const Work& a, const Work& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.place < b.place;
  });
  return out;
}

bool is_loader_wait(std::string_view name) { return name.starts_with("enumerate(DataLoader)"); }

}  // namespace stoker::watch::kineto
