// Builds a recorded run by hand, for the rooms that read one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "stoker/watch/run_data.h"

namespace stoker::testing {

// Times are milliseconds since the process started. Everything lands on the main thread unless another is named.
class RunBuilder {
 public:
  static constexpr std::uint64_t kStartNs = 1'000'000'000;

  RunBuilder();

  RunBuilder& span(std::string_view name, double begin_ms, double end_ms, double value = 0);
  // Still open when the trace ends.
  RunBuilder& open_span(std::string_view name, double begin_ms);
  RunBuilder& side_span(std::string_view name, double begin_ms, double end_ms);  // on another thread
  RunBuilder& instant(std::string_view name, double at_ms, double value = 0);
  RunBuilder& sample(const std::string& counter, double at_ms, double value, const std::string& unit = "");
  // A counter with one reading each second over [begin, end].
  RunBuilder& level(const std::string& counter, double begin_ms, double end_ms, double value);
  RunBuilder& set(std::string_view key, Json value);  // of run.json

  watch::RunData build() const;

 private:
  std::uint32_t name_of(std::string_view name);
  static std::uint64_t ns(double ms) { return kStartNs + static_cast<std::uint64_t>(ms * 1e6); }

  watch::RunData data_;
};

// A loop as everyone writes it: for each epoch the loader's start, `steps` of wait, forward, backward, optimizer, then
// an evaluation and a checkpoint where they have a length.
struct LoopShape {
  int epochs = 3;
  int steps = 20;
  double start_ms = 30;        // data.start
  double first_batch_ms = 50;  // the wait for the first batch of an epoch
  double wait_ms = 10;
  double forward_ms = 20;
  double backward_ms = 30;
  double optimizer_ms = 5;
  double other_ms = 1;  // after each step, covered by no span
  double evaluation_ms = 0;
  double checkpoint_ms = 0;
  double checkpoint_bytes = 10e6;
  double stage_ms = 0;  // of the checkpoint, if a Store saves it
  double batch = 32;
};
// Adds the loop from `at_ms` on and returns where it ends.
double add_loop(RunBuilder& run, const LoopShape& shape, double at_ms = 1000);

}  // namespace stoker::testing
