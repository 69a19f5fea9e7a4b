#include "support/run_builder.h"

#include <algorithm>

namespace stoker::testing {

using watch::RunData;

RunBuilder::RunBuilder() {
  data_.threads = {{100, 100, "main", true}, {100, 101, "loader", false}};
  data_.run = Json::object({{"schema", "stoker.run.v1"},
                            {"run_id", "20261201T183543Z-train-0001"},
                            {"started_monotonic_ns", std::int64_t{kStartNs}},
                            {"outcome", Json::object({{"kind", "finished"}, {"code", 0}})}});
}

std::uint32_t RunBuilder::name_of(std::string_view name) {
  const auto found = std::find(data_.names.begin(), data_.names.end(), name);
  if (found != data_.names.end()) return static_cast<std::uint32_t>(found - data_.names.begin());
  data_.names.emplace_back(name);
  return static_cast<std::uint32_t>(data_.names.size() - 1);
}

RunBuilder& RunBuilder::span(std::string_view name, double begin_ms, double end_ms, double value) {
  data_.spans.push_back({name_of(name), 0, ns(begin_ms), ns(end_ms), false, value});
  return *this;
}

RunBuilder& RunBuilder::open_span(std::string_view name, double begin_ms) {
  data_.spans.push_back({name_of(name), 0, ns(begin_ms), 0, true, 0});
  return *this;
}

RunBuilder& RunBuilder::side_span(std::string_view name, double begin_ms, double end_ms) {
  data_.spans.push_back({name_of(name), 1, ns(begin_ms), ns(end_ms), false, 0});
  return *this;
}

RunBuilder& RunBuilder::instant(std::string_view name, double at_ms, double value) {
  data_.instants.push_back({name_of(name), 0, ns(at_ms), value});
  return *this;
}

RunBuilder& RunBuilder::sample(const std::string& counter, double at_ms, double value, const std::string& unit) {
  auto found = std::find_if(data_.counters.begin(), data_.counters.end(),
                            [&](const watch::Counter& one) { return one.name == counter; });
  if (found == data_.counters.end()) found = data_.counters.insert(found, {counter, unit, {}});
  found->samples.push_back({ns(at_ms), value});
  return *this;
}

RunBuilder& RunBuilder::level(const std::string& counter, double begin_ms, double end_ms, double value) {
  for (double at = begin_ms; at <= end_ms; at += 1000) sample(counter, at, value);
  return *this;
}

RunBuilder& RunBuilder::set(std::string_view key, Json value) {
  data_.run.set(key, std::move(value));
  return *this;
}

RunData RunBuilder::build() const {
  RunData data = data_;
  data.first_ns = kStartNs;
  for (const auto& one : data.spans) data.last_ns = std::max({data.last_ns, one.begin_ns, one.end_ns});
  for (const auto& one : data.instants) data.last_ns = std::max(data.last_ns, one.time_ns);
  for (auto& one : data.spans) one.end_ns = one.open ? data.last_ns : one.end_ns;
  std::stable_sort(data.spans.begin(), data.spans.end(), [](const auto& a, const auto& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.begin_ns < b.begin_ns;
  });
  std::stable_sort(data.instants.begin(), data.instants.end(),
                   [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  return data;
}

double add_loop(RunBuilder& run, const LoopShape& shape, double at_ms) {
  double at = at_ms;
  const auto spend = [&](const char* name, double ms, double value = 0) {
    if (ms > 0) run.span(name, at, at + ms, value);
    at += ms;
  };
  for (int epoch = 0; epoch < shape.epochs; ++epoch) {
    run.instant("data.epoch", at, shape.steps);
    spend("data.start", shape.start_ms);
    for (int step = 0; step < shape.steps; ++step) {
      spend("data.wait", step == 0 ? shape.first_batch_ms : shape.wait_ms, shape.batch);
      spend("forward", shape.forward_ms);
      spend("backward", shape.backward_ms);
      spend("optimizer", shape.optimizer_ms);
      at += shape.other_ms;
    }
    run.span("data.wait", at, at + 0.001, 0);
    at += 0.001;
    run.instant("data.end", at);
    if (shape.evaluation_ms > 0) {
      run.span("eval", at, at + shape.evaluation_ms);
      run.span("eval.forward", at, at + shape.evaluation_ms / 2);
      at += shape.evaluation_ms;
    }
    spend("checkpoint", shape.checkpoint_ms, shape.checkpoint_bytes);
    if (shape.stage_ms > 0) run.span("save.stage", at - shape.stage_ms, at);
  }
  return at;
}

}  // namespace stoker::testing
