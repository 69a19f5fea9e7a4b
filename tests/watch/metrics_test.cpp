#include "stoker/watch/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/run_builder.h"

namespace stoker::watch {
namespace {

using testing::add_loop;
using testing::LoopShape;
using testing::RunBuilder;

// Two epochs of two steps, with every length different.
RunBuilder small_run() {
  RunBuilder run;
  run.span("data.start", 1000, 1040).instant("data.epoch", 1040, 2);
  run.span("data.wait", 1040, 1142, 32);
  run.span("forward", 1150, 1170).span("backward", 1170, 1200).span("optimizer", 1200, 1210);
  run.span("data.wait", 1210, 1220, 32);
  run.span("forward", 1220, 1240).span("backward", 1240, 1270).span("optimizer", 1270, 1280);
  run.span("data.wait", 1280, 1281, 0).instant("data.end", 1281);
  run.span("data.start", 1300, 1310).instant("data.epoch", 1310, 2);
  run.span("data.wait", 1310, 1350, 32);
  run.span("forward", 1350, 1370).span("backward", 1370, 1400).span("optimizer", 1400, 1410);
  run.span("data.wait", 1410, 1430, 32);
  run.span("forward", 1430, 1450).span("backward", 1450, 1480).span("optimizer", 1480, 1490);
  return run;
}

TEST(Metrics, StepsEndWithTheOptimizer) {
  const Metrics m = measure(small_run().build());
  ASSERT_EQ(m.steps.size(), 4U);
  EXPECT_NEAR(m.steps[0].seconds(), 0.210, 1e-9);
  EXPECT_NEAR(m.steps[1].seconds(), 0.070, 1e-9);
  EXPECT_NEAR(m.steps[2].seconds(), 0.130, 1e-9);
  EXPECT_NEAR(m.steps[3].seconds(), 0.080, 1e-9);
  EXPECT_TRUE(m.steps[0].first && m.steps[0].first_of_epoch && m.steps[2].first_of_epoch);
  EXPECT_EQ(m.steady_steps(), 2U);  // the second and the fourth
  EXPECT_NEAR(m.step_s.p50, 0.075, 1e-9);
  EXPECT_NEAR(*m.loop_s, (0.070 + 0.130 + 0.080) / 3, 1e-9);
  EXPECT_NEAR(*m.samples_per_s, 96 / 0.280, 1e-6);
  EXPECT_NEAR(*m.samples_per_step, 32, 1e-9);
}

TEST(Metrics, PhasesAreExclusiveAndSumToTheTrainingTime) {
  const Metrics m = measure(small_run().build());
  EXPECT_NEAR(m.phases[Phase::kWait], 0.102 + 0.010 + 0.001 + 0.040 + 0.020, 1e-9);
  EXPECT_NEAR(m.phases[Phase::kLoaderStart], 0.050, 1e-9);
  EXPECT_NEAR(m.phases[Phase::kForward], 0.080, 1e-9);
  EXPECT_NEAR(m.phases[Phase::kBackward], 0.120, 1e-9);
  EXPECT_NEAR(m.phases[Phase::kOptimizer], 0.040, 1e-9);
  EXPECT_NEAR(m.phases[Phase::kOther], 0.008 + 0.019, 1e-9);
  EXPECT_NEAR(m.phases.total(), 0.490, 1e-9);
}

TEST(Metrics, FirstBatchCountsFromAskingForTheIterator) {
  const Metrics m = measure(small_run().build());
  ASSERT_EQ(m.epochs.size(), 2U);
  EXPECT_NEAR(m.epochs[0].first_batch_s, 0.142, 1e-9);
  EXPECT_NEAR(m.epochs[1].first_batch_s, 0.050, 1e-9);
  EXPECT_NEAR(m.epochs[0].seconds(), 0.300, 1e-9);
  EXPECT_EQ(m.epochs[1].steps, 2U);
  EXPECT_EQ(m.wait_s.count, 2U);  // the first of an epoch is not among them
  EXPECT_NEAR(m.wait_s.max, 0.020, 1e-9);
}

TEST(Metrics, MilestonesCountFromTheProcessStart) {
  const Metrics m = measure(
      small_run().set("python", Json::object({{"torch_imported_ns", RunBuilder::kStartNs + 700'000'000}})).build());
  EXPECT_NEAR(*m.milestones.import_done, 0.700, 1e-9);
  EXPECT_NEAR(*m.milestones.first_batch, 1.142, 1e-9);
  EXPECT_NEAR(*m.milestones.first_step, 1.210, 1e-9);
  EXPECT_NEAR(*m.milestones.first_epoch, 1.300, 1e-9);
}

TEST(Metrics, WhatWasNotSeenHasAReasonAndNoZero) {
  const Metrics m = measure(small_run().build());
  EXPECT_FALSE(m.milestones.import_done);
  EXPECT_FALSE(m.cpu.workers);
  EXPECT_EQ(m.cpu.workers.why, "the recorder took no sample of cpu.workers");
  EXPECT_FALSE(m.checkpoint_mb_per_s);
  EXPECT_EQ(m.checkpoint_mb_per_s.why, "the run saved no checkpoint");
  EXPECT_FALSE(m.gpu_idle_share);
}

TEST(Metrics, NestedSpansKeepTheirOwnTime) {
  RunBuilder run;
  run.span("data.wait", 0, 10, 8).span("forward", 10, 50).span("gc", 20, 25).span("compile", 30, 40);
  run.span("optimizer", 50, 60);
  const Metrics m = measure(run.build());
  EXPECT_NEAR(m.phases[Phase::kForward], 0.025, 1e-9);
  EXPECT_NEAR(m.phases[Phase::kGc], 0.005, 1e-9);
  EXPECT_NEAR(m.phases[Phase::kCompile], 0.010, 1e-9);
  EXPECT_FALSE(m.steps.at(0).steady());
}

TEST(Metrics, EvaluationTakesAllButCheckpoints) {
  RunBuilder run;
  run.span("data.wait", 0, 10, 8).span("forward", 10, 20).span("optimizer", 20, 30);
  run.span("eval", 30, 130);
  run.span("data.start", 35, 40).span("data.wait", 40, 60, 8).span("eval.forward", 60, 90).span("gc", 70, 75);
  run.instant("data.end", 95).span("checkpoint", 100, 120, 5e6);
  run.span("data.wait", 130, 140, 8).span("forward", 140, 150).span("optimizer", 150, 160);
  const Metrics m = measure(run.build());
  EXPECT_NEAR(m.phases[Phase::kEvaluation], 0.080, 1e-9);
  EXPECT_NEAR(m.phases[Phase::kCheckpoint], 0.020, 1e-9);
  EXPECT_NEAR(m.phases[Phase::kWait], 0.020, 1e-9);
  EXPECT_EQ(m.phases[Phase::kGc], 0);
  EXPECT_NEAR(to_json(m)["evaluation_wait_seconds"].as_double(), 0.025, 1e-9);
  EXPECT_NEAR(*m.checkpoint_mb_per_s, 250, 1e-6);
  ASSERT_EQ(m.steps.size(), 2U);
  EXPECT_NEAR(m.steps[1].seconds(), 0.030, 1e-9);  // what lies between is no part of the step
  EXPECT_FALSE(m.steps[1].steady());
}

bool lists_copy(const Json& phases) {
  return std::any_of(phases.items().begin(), phases.items().end(),
                     [](const Json& one) { return one["name"].as_string() == "copy"; });
}

// No hook reports copies, so their absence is no measured zero.
TEST(Metrics, CopiesAreListedOnlyWhereTheyWereSeen) {
  const Json without = to_json(measure(small_run().build()));
  EXPECT_FALSE(lists_copy(without["phases"]));
  EXPECT_FALSE(without["epochs"].items().at(0)["phase_seconds"].has("copy"));
  EXPECT_TRUE(lists_copy(to_json(measure(small_run().span("copy", 1142, 1150).build()))["phases"]));
}

TEST(Metrics, HundredMegabytesInTwoSecondsAreFiftyASecond) {
  const Metrics m = measure(small_run().span("checkpoint", 1490, 3490, 100e6).build());
  EXPECT_NEAR(*m.checkpoint_mb_per_s, 50, 1e-9);
}

// model.eval() before the last evaluation and no model.train() after it: the time until the process ends is not
// evaluation.
TEST(Metrics, AnEvaluationThatIsNeverClosedEndsWithItsLastSpan) {
  RunBuilder run;
  run.span("data.wait", 0, 10, 8).span("forward", 10, 20).span("optimizer", 20, 30);
  run.open_span("eval", 30).span("data.wait", 30, 40, 8).span("eval.forward", 40, 50).instant("exception", 5000);
  EXPECT_NEAR(measure(run.build()).phases[Phase::kEvaluation], 0.020, 1e-9);
}

// A model that is fine-tuned with its batch norms frozen stays in eval mode while it trains.
TEST(Metrics, TrainingInEvalModeIsTraining) {
  RunBuilder run;
  run.span("eval", 0, 100);
  run.span("data.wait", 0, 10, 8).span("eval.forward", 10, 40).span("backward", 40, 80).span("optimizer", 80, 90);
  const Metrics m = measure(run.build());
  EXPECT_EQ(m.phases[Phase::kEvaluation], 0);
  EXPECT_NEAR(m.phases[Phase::kForward], 0.030, 1e-9);
}

TEST(Metrics, APassWithoutGradientsIsAnEvaluation) {
  RunBuilder run;
  run.instant("data.epoch", 0).span("data.wait", 0, 10, 8).span("forward", 10, 20).span("backward", 20, 25);
  run.span("optimizer", 25, 30).instant("data.end", 31);
  run.instant("data.epoch", 40).span("data.wait", 40, 60, 8).span("eval.forward", 60, 90).instant("data.end", 95);
  const Metrics m = measure(run.build());
  EXPECT_EQ(m.epochs.size(), 1U);
  EXPECT_NEAR(m.phases[Phase::kWait], 0.010, 1e-9);
  EXPECT_NEAR(m.phases[Phase::kEvaluation], 0.055, 1e-9);
}

TEST(Metrics, ARunWithoutTrainingIsEmpty) {
  const Metrics m = measure(RunBuilder().instant("exception", 10).build());
  EXPECT_EQ(m.training_seconds(), 0);
  EXPECT_EQ(m.steps.size(), 0U);
  EXPECT_FALSE(m.loop_s);
}

// A sample stands for the second before it and counts by how much of that second was training.
TEST(Metrics, CoresAreReadWhileStepsRan) {
  RunBuilder run;
  LoopShape shape{.epochs = 2, .steps = 20, .evaluation_ms = 4000};
  add_loop(run, shape);
  const Metrics bare = measure(run.build());
  for (double at = 0; at <= 12000; at += 1000) {
    const bool evaluating = (at > 2400 && at < 6300) || at > 8100;
    run.sample("cpu.trainee", at, evaluating ? 0.1 : 1.5).sample("cpu.limit", at, 2);
  }
  const Metrics m = measure(run.build());
  EXPECT_NEAR(m.phases.total(), bare.phases.total(), 1e-9);
  EXPECT_NEAR(*m.cpu.trainee, 1.5, 0.2);
  EXPECT_NEAR(*m.cpu.limit, 2, 1e-9);
}

TEST(Metrics, IdleGpuIsUtilisationUnderTenPercent) {
  RunBuilder run = small_run();
  run.span("forward", 1500, 6000);
  double at = 1000;
  for (const double busy : {0.0, 0.05, 0.09, 0.10, 0.50}) run.sample("gpu.0.busy", at += 900, busy);
  EXPECT_NEAR(*measure(run.build()).gpu_idle_share, 0.6, 1e-9);
}

// Whatever the stream, the phases are exclusive: they sum to the training time, and so does every step.
TEST(Metrics, RandomStreamsSumToTheWhole) {
  const char* names[] = {"data.wait", "data.start", "forward",        "eval.forward", "backward",
                         "optimizer", "checkpoint", "eval",           "gc",           "compile",
                         "copy",      "unknown",    "checkpoint.load"};
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    RunBuilder run;
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    for (unsigned i = 0, n = 1 + below(60); i < n; ++i) {
      const double begin = below(1000);
      const char* name = names[below(std::size(names))];
      if (below(12) == 0) {
        run.open_span(name, begin);
      } else {
        run.span(name, begin, begin + below(200), below(3));
      }
      if (below(5) == 0) run.instant(below(2) == 0 ? "data.epoch" : "data.end", below(1000));
    }
    const Metrics m = measure(run.build());
    ASSERT_NEAR(m.phases.total(), m.training_seconds(), 1e-9) << "seed " << seed;
    double shares = 0;
    for (std::size_t i = 0; i < kPhaseCount; ++i) {
      ASSERT_GE(m.phases.seconds[i], 0) << "seed " << seed;
      shares += m.phases.share(static_cast<Phase>(i));
    }
    ASSERT_NEAR(shares, m.training_seconds() > 0 ? 1 : 0, 1e-9) << "seed " << seed;
    for (const Step& step : m.steps) {
      ASSERT_NEAR(step.phases.total(), static_cast<double>(step.end_ns - step.begin_ns) / 1e9, 1e-9) << "seed " << seed;
    }
  }
}

TEST(Distribution, InterpolatesBetweenOrderStatistics) {
  const Distribution d = distribution({4, 1, 3, 2});
  EXPECT_EQ(d.count, 4U);
  EXPECT_NEAR(d.mean, 2.5, 1e-12);
  EXPECT_NEAR(d.p50, 2.5, 1e-12);
  EXPECT_NEAR(d.p90, 3.7, 1e-12);
  EXPECT_EQ(distribution({}).count, 0U);
}

}  // namespace
}  // namespace stoker::watch
