// What the host did: profiler steps, the operators' own times, the allocator's curve.
#include <algorithm>
#include <map>
#include <numeric>

#include "watch/kineto/gpu_work.h"

namespace stoker::watch::kineto {
namespace {

constexpr std::size_t kTimelinePoints = 200;

// One thread's operators. At any time the thread's time is that of the operator that began last among those open, so
// that operators that overlap without nesting (damaged traces) still share the thread's time and add up to it.
class SelfTimes {
 public:
  explicit SelfTimes(std::vector<OpUse>& uses) : uses_(uses) {}

  void enter(const Event& event) {
    leave_until(event.start_ns);
    charge(event.start_ns);
    open_.push_back({event.end_ns(), event.name});
  }
  void finish() { leave_until(INT64_MAX); }

 private:
  struct Open {
    std::int64_t end_ns;
    std::uint32_t name;
  };

  void leave_until(std::int64_t now_ns) {
    while (!open_.empty() && open_.back().end_ns <= now_ns) {
      charge(open_.back().end_ns);
      open_.pop_back();
    }
  }
  void charge(std::int64_t until_ns) {
    if (until_ns <= cursor_ns_) return;
    if (!open_.empty()) add_ns(uses_[open_.back().name].self_ns, until_ns - cursor_ns_);
    cursor_ns_ = until_ns;
  }

  std::vector<OpUse>& uses_;
  std::vector<Open> open_;
  std::int64_t cursor_ns_ = INT64_MIN / 2;
};

std::int64_t busy_within(const Stretches& busy, const Stretch& step) { return common_ns(busy, {step}); }

}  // namespace

std::vector<KinetoStep> measure_steps(const TraceText& trace, const GpuWork& work, std::int64_t origin_ns) {
  std::vector<Event> found;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind == Kind::kAnnotation && trace.names[event.name].starts_with("ProfilerStep")) found.push_back(event);
  }
  std::sort(found.begin(), found.end(), [](const Event& a, const Event& b) { return a.start_ns < b.start_ns; });
  std::vector<Stretch> any;
  any.reserve(work.pieces.size());
  for (const Work& piece : work.pieces) any.push_back({piece.start_ns, piece.end_ns});
  const Stretches busy = merged(std::move(any));
  std::vector<std::int64_t> launched;
  for (const Work& piece : work.pieces) {
    if (piece.has_launch) launched.push_back(piece.launch_ns);
  }
  std::sort(launched.begin(), launched.end());

  std::vector<KinetoStep> steps;
  constexpr std::size_t kMostSteps = 10'000;
  for (const Event& event : found) {
    if (steps.size() == kMostSteps) break;
    KinetoStep step;
    step.name = trace.names[event.name];
    step.start_ns = event.start_ns - origin_ns;
    step.duration_ns = event.duration_ns;
    const auto from = std::lower_bound(launched.begin(), launched.end(), event.start_ns);
    const auto to = std::lower_bound(launched.begin(), launched.end(), event.end_ns());
    step.launched = static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(0, to - from));
    step.gpu_busy_ns = busy_within(busy, {event.start_ns, event.end_ns()});
    step.in_window = event.start_ns < work.last_step_start_ns;
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<OpUse> measure_ops(const TraceText& trace) {
  std::vector<std::uint32_t> order;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].kind == Kind::kOp) order.push_back(static_cast<std::uint32_t>(i));
  }
  // Of two that begin together the longer one is outside; of equals the earlier in the file.
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Event& x = trace.events[a];
    const Event& y = trace.events[b];
    if (x.lane != y.lane) return x.lane < y.lane;
    if (x.start_ns != y.start_ns) return x.start_ns < y.start_ns;
    return x.duration_ns != y.duration_ns ? x.duration_ns > y.duration_ns : a < b;
  });
  std::vector<OpUse> by_name(trace.names.size());
  for (std::size_t first = 0; first < order.size();) {
    const std::uint32_t lane = trace.events[order[first]].lane;
    SelfTimes thread(by_name);
    for (; first < order.size() && trace.events[order[first]].lane == lane; ++first) {
      const Event& event = trace.events[order[first]];
      ++by_name[event.name].count;
      add_ns(by_name[event.name].total_ns, event.duration_ns);
      thread.enter(event);
    }
    thread.finish();
  }
  std::vector<OpUse> out;
  for (std::size_t i = 0; i < by_name.size(); ++i) {
    if (by_name[i].count == 0) continue;
    by_name[i].name = trace.names[static_cast<std::uint32_t>(i)];
    out.push_back(std::move(by_name[i]));
  }
  std::sort(out.begin(), out.end(), [](const OpUse& a, const OpUse& b) {
    return a.self_ns != b.self_ns ? a.self_ns > b.self_ns : a.name < b.name;
  });
  return out;
}

std::vector<MemoryUse> measure_memory(const TraceText& trace, std::int64_t origin_ns) {
  std::map<std::int64_t, std::vector<MemoryUse::Point>> devices;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != Kind::kMemory) continue;
    devices[trace.lanes[event.lane].first].push_back(
        {event.start_ns - origin_ns, event.duration_ns, event.correlation});
  }
  std::vector<MemoryUse> out;
  for (auto& [device, points] : devices) {
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.at_ns < b.at_ns; });
    MemoryUse use;
    use.device = device;
    use.events = points.size();
    const std::size_t stride = (points.size() + kTimelinePoints - 1) / kTimelinePoints;
    for (std::size_t from = 0; from < points.size(); from += stride) {
      const auto begin = points.begin() + static_cast<std::ptrdiff_t>(from);
      const auto end = points.begin() + static_cast<std::ptrdiff_t>(std::min(from + stride, points.size()));
      use.timeline.push_back(*std::max_element(
          begin, end, [](const auto& a, const auto& b) { return a.allocated_bytes < b.allocated_bytes; }));
    }
    for (const auto& point : points) {
      use.peak_allocated_bytes = std::max(use.peak_allocated_bytes, point.allocated_bytes);
      use.peak_reserved_bytes = std::max(use.peak_reserved_bytes, point.reserved_bytes);
    }
    out.push_back(std::move(use));
  }
  return out;
}

}  // namespace stoker::watch::kineto
