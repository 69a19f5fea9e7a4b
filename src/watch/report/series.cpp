#include "watch/report/series.h"

#include <algorithm>
#include <cmath>

namespace stoker::watch {
namespace {

constexpr std::size_t kMostPoints = 1500;
constexpr double kFirstEdgeMs = 0.1;
constexpr int kBucketsPerDecade = 4;

double since_start(const Metrics& metrics, std::uint64_t time_ns) {
  return (static_cast<double>(time_ns) - static_cast<double>(metrics.start_ns)) / 1e9;
}

// Three decimals: a microsecond of a millisecond figure, a millisecond of a second. JSON stays small.
double rounded(double value) { return std::round(value * 1000) / 1000; }

std::size_t group_size(std::size_t count) { return std::max<std::size_t>(1, (count + kMostPoints - 1) / kMostPoints); }

Json curve(const Counter& counter, const Metrics& metrics) {
  Json times = Json::array();
  Json values = Json::array();
  const std::size_t group = group_size(counter.samples.size());
  for (std::size_t from = 0; from < counter.samples.size(); from += group) {
    const auto begin = counter.samples.begin() + static_cast<std::ptrdiff_t>(from);
    const auto end =
        counter.samples.begin() + static_cast<std::ptrdiff_t>(std::min(from + group, counter.samples.size()));
    const auto most = std::max_element(begin, end, [](const Sample& a, const Sample& b) { return a.value < b.value; });
    times.push(rounded(since_start(metrics, most->time_ns)));
    values.push(counter.unit == "bytes" ? std::round(most->value) : rounded(most->value));
  }
  return Json::object(
      {{"name", counter.name}, {"unit", counter.unit}, {"time_s", std::move(times)}, {"value", std::move(values)}});
}

}  // namespace

Json step_series(const Metrics& metrics) {
  const std::size_t group = group_size(metrics.steps.size());
  Json ends = Json::array();
  Json slowest = Json::array();
  Json marks = Json::array();
  std::vector<Json> phases(kPhaseCount, Json::array());
  for (std::size_t from = 0; from < metrics.steps.size(); from += group) {
    const std::size_t to = std::min(from + group, metrics.steps.size());
    PhaseTimes sum;
    double most = 0;
    bool steady = true;
    for (std::size_t i = from; i < to; ++i) {
      const Step& step = metrics.steps[i];
      for (std::size_t p = 0; p < kPhaseCount; ++p) sum.seconds[p] += step.phases.seconds[p];
      most = std::max(most, step.phases.total());
      steady = steady && step.steady();
    }
    for (std::size_t p = 0; p < kPhaseCount; ++p) {
      phases[p].push(rounded(sum.seconds[p] * 1e3 / static_cast<double>(to - from)));
    }
    ends.push(rounded(since_start(metrics, metrics.steps[to - 1].end_ns)));
    slowest.push(rounded(most * 1e3));
    marks.push(steady);
  }
  Json by_phase = Json::object();
  for (std::size_t p = 0; p < kPhaseCount; ++p) {
    const auto phase = static_cast<Phase>(p);
    if (metrics.shows(phase)) by_phase.set(name(phase), std::move(phases[p]));
  }
  return Json::object({{"steps_per_point", group},
                       {"end_s", std::move(ends)},
                       {"phase_ms", std::move(by_phase)},
                       {"slowest_ms", std::move(slowest)},
                       {"steady", std::move(marks)}});
}

Json epoch_marks(const Metrics& metrics) {
  Json list = Json::array();
  const std::size_t group = group_size(metrics.epochs.size());
  for (std::size_t i = 0; i < metrics.epochs.size(); i += group) {
    const Epoch& epoch = metrics.epochs[i];
    list.push(Json::object({{"epoch", i + 1},
                            {"begin_s", rounded(since_start(metrics, epoch.begin_ns))},
                            {"end_s", rounded(since_start(metrics, epoch.end_ns))}}));
  }
  return list;
}

Json wait_histogram(const Metrics& metrics) {
  Json edges = Json::array();
  Json counts = Json::array();
  if (metrics.waits_s.empty()) return Json::object({{"edges_ms", edges}, {"counts", counts}});
  const auto bucket_of = [](double ms) {
    return ms < kFirstEdgeMs ? 0 : 1 + static_cast<int>(std::log10(ms / kFirstEdgeMs) * kBucketsPerDecade);
  };
  std::vector<std::int64_t> tally(static_cast<std::size_t>(bucket_of(metrics.wait_s.max * 1e3)) + 1, 0);
  for (const double wait : metrics.waits_s) ++tally[static_cast<std::size_t>(bucket_of(wait * 1e3))];
  edges.push(0.0);
  for (std::size_t i = 0; i < tally.size(); ++i) {
    edges.push(rounded(kFirstEdgeMs * std::pow(10, static_cast<double>(i) / kBucketsPerDecade)));
    counts.push(tally[i]);
  }
  return Json::object({{"edges_ms", std::move(edges)}, {"counts", std::move(counts)}});
}

Json curves(const RunData& data, const Metrics& metrics) {
  Json list = Json::array();
  for (const Counter& counter : data.counters) {
    if (!counter.samples.empty()) list.push(curve(counter, metrics));
  }
  return list;
}

}  // namespace stoker::watch
