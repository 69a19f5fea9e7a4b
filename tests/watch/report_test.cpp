#include "stoker/watch/report.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/run_builder.h"

namespace stoker::watch {
namespace {

using testing::add_loop;
using testing::LoopShape;
using testing::RunBuilder;

RunBuilder recorded(const LoopShape& shape) {
  RunBuilder run;
  const double end = add_loop(run, shape);
  run.level("cpu.trainee", 0, end, 0.8).level("cpu.workers", 0, end, 1.1).level("cpu.limit", 0, end, 2);
  run.set("command", Json(Json::Array{"python", "train.py", "--name", "two words"}));
  run.set("python", Json::object({{"recorded", true}, {"torch_imported_ns", RunBuilder::kStartNs + 600'000'000}}));
  run.set("signals", Json::object({{"gpu", Signal<bool>::unavailable("no NVIDIA driver")}}));
  return run;
}

VerdictInputs measured_rate() {
  VerdictInputs inputs;
  inputs.stoker_images_per_cpu_second = 4000.0;
  inputs.num_workers = 2;
  inputs.accelerable = true;
  inputs.torch_threads = 2;
  return inputs;
}

Json report_of(const RunBuilder& run) {
  const RunData data = run.build();
  const Metrics metrics = measure(data);
  return make_report(data, metrics, to_json(judge(metrics, measured_rate()), metrics, "2026-12-01T18:40:00Z"));
}

std::string text_of(const Json& report) {
  std::string all;
  for (const std::string& line : terminal_report(report)) all += line + "\n";
  return all;
}

const LoopShape kWaiting = {.wait_ms = 90, .checkpoint_ms = 40};

TEST(Report, TheTerminalSaysWhatTheRunWasWhatBindsItAndTheFix) {
  EXPECT_EQ(text_of(report_of(recorded(kWaiting))), R"(20261201T183543Z-train-0001   python train.py --name 'two words'
finished after 9.85 s; 60 steps in 3 epochs, 220 samples/s

where 8.85 s of training went
  wait for data        59.7 %  5.28 s     ████████████████████████
  loader start          1.0 %  90.0 ms
  forward              13.6 %  1.20 s     █████
  backward             20.3 %  1.80 s     ████████
  optimizer             3.4 %  300 ms     █
  checkpoint            1.3 %  120 ms     █
  other                 0.7 %  60.0 ms
  together            100.0 %

what binds it: data-bound (confidence: high)
  The training waits for data 62 % of its loop.
  - of an average step of 146 ms, 89.7 ms is waiting for data (62 %), epoch starts included
  - waits within an epoch: half are under 90.0 ms, one in twenty over 90.0 ms
  - the first batch of an epoch takes 80.0 ms
  - of 2 cores the loader's workers use 1.10 and the training process 0.80
  - Stoker's loader, measured on this run's files: 4,000 images per CPU-second, 9.20 ms a batch
    where today's takes 160 ms

the fix: Load the batches with Stoker's threads in place of the DataLoader's workers.
    loader = stoker.accelerate(loader)
  predicted gain: 58 % of step time (53 to 63): a step of 146 ms becomes 60.8 ms

step 146 ms (within epochs: median 146 ms, p95 146 ms)   CPU 1.90 of 2 cores
data wait p50 90.0 ms, p95 90.0 ms, p99 90.0 ms; first batch of an epoch 80.0 ms; saves 250 MB/s
from start to: import 600 ms, first batch 1.08 s, first step 1.14 s, first epoch 3.95 s
recorder overhead 0.01 %, an estimate (events times 1.5 µs, over the training time)
unavailable: gpu (no NVIDIA driver); memory.used (the recorder took no sample of memory.used);
  memory.limit (the recorder took no sample of memory.limit); gpu.idle (the recorder took no sample
  of gpu.0.busy)
)");
}

// Copies are not hooked; on a CPU nobody misses them, on a GPU the report says that it does not have them.
TEST(Report, OnAGpuTheCopiesAreUnavailable) {
  const auto copies = [](const Json& report) {
    for (const Json& one : report["signals"].items()) {
      if (one["name"].as_string() == "copies") return one["why"].as_string();
    }
    return std::string("not listed");
  };
  RunBuilder on_gpu = recorded(kWaiting);
  on_gpu.level("gpu.0.busy", 0, 9000, 0.7);
  EXPECT_EQ(copies(report_of(on_gpu)), "not hooked: their time lies in other phases");
  EXPECT_EQ(copies(report_of(recorded(kWaiting))), "not listed");
}

TEST(Report, SharesShownSumToAHundred) {
  for (int i = 1; i < 40; ++i) {
    const Json report = report_of(recorded({.wait_ms = 0.37 * i, .forward_ms = 1.3 * i, .other_ms = 7.0 / i}));
    double sum = 0;
    for (const Json& phase : report["metrics"]["phases"].items()) sum += phase["percent"].as_double();
    EXPECT_NEAR(sum, 100, 1e-9);
  }
}

TEST(Report, TheTerminalFitsAScreen) {
  const auto lines = terminal_report(report_of(recorded(kWaiting)));
  EXPECT_LE(lines.size(), 40U);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 160U) << line;
}

TEST(Report, OutcomesAreSaidInWords) {
  const auto says = [](const Json& outcome) { return outcome_in_words(Json::object({{"outcome", outcome}}), 12.3); };
  EXPECT_EQ(says(Json::object({{"kind", "finished"}, {"why", ""}})), "finished after 12.3 s");
  EXPECT_EQ(says(Json::object({{"kind", "signal"}, {"signal", 9}, {"why", "out of memory"}})),
            "killed by SIGKILL after 12.3 s (out of memory)");
  EXPECT_EQ(says(Json::object({{"kind", "exit"}, {"code", 3}, {"why", "an exception ended the script"}})),
            "failed with exit code 3 after 12.3 s (an exception ended the script)");
  EXPECT_EQ(says(Json::object({{"kind", "lost"}, {"why", "the recorder died"}})),
            "lost: the recorder died; 12.3 s are recorded");
}

TEST(Report, SignalsThatAreMissingSayWhy) {
  const Json report = report_of(recorded(kWaiting));
  bool found = false;
  for (const Json& one : report["signals"].items()) {
    if (one["name"].as_string() != "gpu") continue;
    found = true;
    EXPECT_FALSE(one["available"].as_bool());
    EXPECT_EQ(one["why"].as_string(), "no NVIDIA driver");
  }
  EXPECT_TRUE(found);
  EXPECT_NE(text_of(report).find("gpu (no NVIDIA driver)"), std::string::npos);
}

TEST(Report, ALongRunStaysSmall) {
  const Json report = report_of(recorded({.epochs = 4, .steps = 20000}));
  EXPECT_LE(report["timeline"]["end_s"].items().size(), 1500U);
  EXPECT_LT(report.dump().size(), 1U << 20);
}

TEST(Report, WaitsFallIntoBucketsThatHoldThemAll) {
  const Json report = report_of(recorded(kWaiting));
  const auto& counts = report["waits"]["counts"].items();
  const auto total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0},
                                     [](std::int64_t sum, const Json& one) { return sum + one.as_int(); });
  EXPECT_EQ(total, 57);
  EXPECT_EQ(report["waits"]["edges_ms"].items().size(), counts.size() + 1);
  EXPECT_GE(report["waits"]["edges_ms"].items().back().as_double(), 90);
}

TEST(Comparison, SetsTheMeasuredGainBesideThePrediction) {
  const Json before = report_of(recorded(kWaiting));
  const Json after = report_of(recorded({.start_ms = 1, .first_batch_ms = 10, .wait_ms = 1}));
  const auto compared = compare_reports(before, after);
  ASSERT_TRUE(compared.ok());
  const double from = before["metrics"]["loop_step_ms"]["value"].as_double();
  const double to = after["metrics"]["loop_step_ms"]["value"].as_double();
  EXPECT_NEAR((*compared)["measured_gain_points"].as_double(), 100 * (1 - to / from), 1e-9);
  EXPECT_EQ((*compared)["predicted"]["points"].as_double(), before["verdict"]["predicted_gain_points"].as_double());
  EXPECT_NEAR(
      (*compared)["miss_points"].as_double(),
      std::abs((*compared)["measured_gain_points"].as_double() - (*compared)["predicted"]["points"].as_double()), 1e-9);
}

TEST(Comparison, NeedsStepsOnBothSides) {
  const Json none = report_of(RunBuilder().instant("exception", 5));
  EXPECT_EQ(compare_reports(report_of(recorded(kWaiting)), none).code(), ErrorCode::kBadInput);
}

TEST(Page, CannotBeBrokenOutOfByWhatARunIsCalled) {
  RunBuilder run = recorded(kWaiting);
  run.set("name", "</script><script>alert(1)</script><!--");
  const auto page = html_page(report_of(run));
  if (!page) GTEST_SKIP() << page.error().message;
  EXPECT_EQ(page->find("<script>alert(1)"), std::string::npos);
  EXPECT_NE(page->find("\\u003c/script>\\u003cscript>alert(1)"), std::string::npos);
}

}  // namespace
}  // namespace stoker::watch
