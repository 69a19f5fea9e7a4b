#include "stoker/watch/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "support/run_builder.h"
#include "watch/verdict/rules.h"
#include "watch/verdict/step_model.h"

namespace stoker::watch {
namespace {

using testing::add_loop;
using testing::LoopShape;
using testing::RunBuilder;

Verdict verdict_of(const LoopShape& shape, const VerdictInputs& inputs = {}) {
  RunBuilder run;
  add_loop(run, shape);
  return judge(measure(run.build()), inputs);
}

LoopShape waiting() { return {.wait_ms = 150, .forward_ms = 20, .backward_ms = 30}; }

VerdictInputs image_folder(double rate = 4000) {
  VerdictInputs inputs;
  inputs.stoker_images_per_cpu_second = rate;
  inputs.num_workers = 2;
  inputs.accelerable = true;
  inputs.torch_threads = 2;
  return inputs;
}

TEST(Verdict, LongWaitsAreDataBoundAndAcceleratingIsTheFix) {
  const Verdict verdict = verdict_of(waiting(), image_folder());
  EXPECT_EQ(verdict.first().cause, "data-bound");
  EXPECT_EQ(verdict.first().fix_line, "loader = stoker.accelerate(loader)");
  ASSERT_TRUE(verdict.first().gain);
  EXPECT_GT((*verdict.first().gain).points, 40);
  EXPECT_LE((*verdict.first().gain).low, (*verdict.first().gain).points - 5);
  EXPECT_GE((*verdict.first().gain).high, (*verdict.first().gain).points + 5);
}

bool has_line(const Finding& finding, std::string_view part) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

// What accelerate refuses is not promised, and the part that it does not know is named.
TEST(Verdict, ALoaderThatAccelerateRefusesIsNotPromisedIt) {
  VerdictInputs inputs = image_folder();
  inputs.accelerable = false;
  inputs.not_known = "the transform torchvision.transforms.v2._color.ColorJitter";
  const Verdict verdict = verdict_of(waiting(), inputs);
  EXPECT_EQ(verdict.first().cause, "data-bound");
  EXPECT_TRUE(verdict.first().fix_line.starts_with("DataLoader(..., num_workers="));
  EXPECT_NE(verdict.first().fix.find("does not know the transform torchvision"), std::string::npos);
}

TEST(Verdict, ALoaderThatWasNotAskedAboutIsSaidToBeUnknownAndEstimated) {
  VerdictInputs inputs = image_folder();
  inputs.accelerable = Signal<bool>::unavailable("it was not recorded");
  const Verdict verdict = verdict_of(waiting(), inputs);
  EXPECT_EQ(verdict.first().fix_line, "loader = stoker.accelerate(loader)");
  EXPECT_EQ(verdict.first().confidence, Confidence::kMedium);
  EXPECT_TRUE(has_line(verdict.first(), "is unknown (it was not recorded); the gain is an estimate"));
  EXPECT_FALSE(has_line(verdict_of(waiting(), image_folder()).first(), "unknown"));
}

TEST(VerdictInputs, TheLargestLoaderIsTheTrainingLoader) {
  Json loaders = Json::array();
  loaders.push(Json::object({{"samples", 10}, {"accelerable", true}, {"recipe", Json::array()}}));
  loaders.push(Json::object({{"samples", 90}, {"accelerable", false}, {"why", "the collate_fn f"}}));
  const VerdictInputs inputs = inputs_from(RunBuilder().set("loaders", loaders).build());
  ASSERT_TRUE(inputs.accelerable);
  EXPECT_FALSE(*inputs.accelerable);
  EXPECT_EQ(inputs.not_known, "the collate_fn f");
}

TEST(VerdictInputs, WithoutTheHooksAnswerItIsUnknownWhatAccelerateDoes) {
  Json loaders = Json::array();
  loaders.push(Json::object({{"samples", 90}, {"kind", "ImageFolder"}}));
  EXPECT_EQ(inputs_from(RunBuilder().set("loaders", loaders).build()).accelerable.why, "it was not recorded");
}

TEST(Verdict, AWaitThatStokersLoaderCannotShortenHasNoPrediction) {
  VerdictInputs inputs = image_folder();
  inputs.accelerated = true;
  const Verdict verdict = verdict_of(waiting(), inputs);
  EXPECT_EQ(verdict.first().cause, "data-bound");
  EXPECT_FALSE(verdict.first().gain);
}

TEST(Verdict, MostlyComputeIsNothingToFix) {
  const Verdict verdict = verdict_of({.wait_ms = 1, .forward_ms = 40, .backward_ms = 60}, image_folder());
  EXPECT_EQ(verdict.first().cause, "nothing-to-fix");
  EXPECT_FALSE(verdict.first().gain);
}

TEST(Verdict, ComputeWithSomeOtherTimeIsComputeBound) {
  const Verdict verdict =
      verdict_of({.wait_ms = 1, .forward_ms = 30, .backward_ms = 45, .other_ms = 14}, image_folder());
  EXPECT_EQ(verdict.first().cause, "compute-bound");
}

// What is done already is not advised; a model without convolutions has no layout to change.
TEST(Verdict, ChannelsLastIsAdvisedOnlyToConvolutionsThatDoNotUseIt) {
  const LoopShape shape{.wait_ms = 1, .forward_ms = 30, .backward_ms = 45, .other_ms = 14};
  const auto fix_line = [&](bool channels_last, int convolutions) {
    VerdictInputs inputs = image_folder();
    inputs.channels_last = channels_last;
    inputs.convolutions = convolutions;
    const Verdict verdict = verdict_of(shape, inputs);
    EXPECT_EQ(verdict.first().cause, "compute-bound");
    return verdict.first().fix_line;
  };
  EXPECT_EQ(fix_line(false, 5), "model = model.to(memory_format=torch.channels_last)");
  EXPECT_EQ(fix_line(true, 5), "");
  EXPECT_EQ(fix_line(false, 0), "");
}

TEST(VerdictInputs, TheModelsLayoutIsReadFromTheRun) {
  const Json model = Json::object({{"channels_last", true}, {"convolutions", 5}});
  const VerdictInputs inputs = inputs_from(RunBuilder().set("python", Json::object({{"model", model}})).build());
  ASSERT_TRUE(inputs.channels_last);
  EXPECT_TRUE(*inputs.channels_last);
  EXPECT_EQ(inputs.convolutions, 5);
  EXPECT_FALSE(inputs_from(RunBuilder().build()).channels_last);
}

TEST(Verdict, LongSavesAreCheckpointBound) {
  const Verdict verdict = verdict_of({.wait_ms = 1, .checkpoint_ms = 900}, image_folder());
  EXPECT_EQ(verdict.first().cause, "checkpoint-bound");
  EXPECT_EQ(verdict.first().gain_of, "training time");
  EXPECT_NEAR((*verdict.first().gain).points, 100 * 2700.0 / (2700 + 3 * (80 + 20 * 57 - 1)) * 0.75, 1);
}

// Stoker's own saves emit the same `checkpoint` span; whoever has a Store is not sent to it.
TEST(Verdict, LongSavesOfAStoreAreNotAnsweredWithAStore) {
  const Verdict verdict = verdict_of({.wait_ms = 1, .checkpoint_ms = 900, .stage_ms = 100}, image_folder());
  EXPECT_EQ(verdict.first().cause, "checkpoint-bound");
  EXPECT_EQ(verdict.first().fix_line.find("store.save"), std::string::npos);
  EXPECT_NE(verdict.first().fix.find("faster disk"), std::string::npos);
  EXPECT_TRUE(has_line(verdict.first(), "0.3 s staged the state, 2.4 s gathered it or waited"));
}

TEST(Verdict, LongEvaluationsAreEvaluationBound) {
  const Verdict verdict = verdict_of({.wait_ms = 1, .evaluation_ms = 2000}, image_folder());
  EXPECT_EQ(verdict.first().cause, "evaluation-bound");
  EXPECT_TRUE(verdict.first().fix_line.starts_with("if epoch % 3 == 2"));
}

TEST(Verdict, TimeBetweenTheCallsIsHostBound) {
  const Verdict verdict = verdict_of({.wait_ms = 1, .other_ms = 60}, image_folder());
  EXPECT_EQ(verdict.first().cause, "host-bound");
}

TEST(Rules, EachHasItsOwnIdAndASource) {
  std::set<std::string> ids;
  for (const Rule& rule : rules()) {
    EXPECT_TRUE(ids.insert(rule.cause).second) << rule.cause;
    EXPECT_NE(std::string(rule.source), "") << rule.cause;
  }
}

// No hook reports copies: a figure of them would be made up.
TEST(Verdict, CopiesThatWereNotSeenAreNotCalledZero) {
  const Verdict compute = verdict_of({.wait_ms = 1, .forward_ms = 40, .backward_ms = 60}, image_folder());
  EXPECT_FALSE(has_line(compute.first(), "copies"));
  VerdictInputs on_gpu = image_folder();
  on_gpu.gpu = true;
  const LoopShape between = {.wait_ms = 1, .other_ms = 60};
  EXPECT_TRUE(has_line(verdict_of(between, on_gpu).first(), "copies to the GPU are not hooked and may be in it"));
  EXPECT_FALSE(has_line(verdict_of(between, image_folder()).first(), "copies"));
}

TEST(Verdict, AFewStepsAreNotEnoughEvidence) {
  const Verdict verdict = verdict_of({.epochs = 1, .steps = 5}, image_folder());
  EXPECT_EQ(verdict.first().cause, "not-enough-evidence");
  EXPECT_EQ(verdict.first().says, "Not enough evidence: 5 steps, a verdict needs 10");
}

TEST(Verdict, ARunThatNeverTrainsSaysSo) {
  const Verdict verdict = judge(measure(RunBuilder().instant("exception", 5).build()), {});
  EXPECT_EQ(verdict.first().says, "Not enough evidence: no optimizer step was seen");
}

// Prefetching hides the wait, but the workers hold cores that the step could use.
TEST(Verdict, WorkersThatTakeTheCoresAreDataBoundWithoutWaits) {
  RunBuilder run;
  const double end = add_loop(run, {.epochs = 2, .steps = 100, .start_ms = 1, .first_batch_ms = 5, .wait_ms = 1});
  run.level("cpu.trainee", 0, end, 0.9).level("cpu.workers", 0, end, 1.05).level("cpu.limit", 0, end, 2);
  const Verdict verdict = judge(measure(run.build()), image_folder(4000));
  EXPECT_EQ(verdict.first().cause, "data-bound");
  EXPECT_EQ(verdict.first().says, "The loader's workers take 1.05 of 2 cores from the training");
}

TEST(Verdict, TheJsonCarriesThePredictionAtTheTop) {
  RunBuilder run;
  add_loop(run, waiting());
  const Metrics metrics = measure(run.build());
  const Json json = to_json(judge(metrics, image_folder()), metrics, "2026-12-01T18:35:43Z");
  EXPECT_EQ(json["schema"].as_string(), "stoker.verdict.v1");
  EXPECT_EQ(json["binds"].as_string(), "data-bound");
  EXPECT_NEAR(json["step_ms"].as_double(), *metrics.loop_s * 1e3, 1e-9);
  EXPECT_EQ(json["predicted_gain_points"].as_double(), json["findings"].items()[0]["gain_points"]["value"].as_double());
}

TEST(StepModel, OnAFullMachineTheStepIsTheWorkOverTheCores) {
  const StepFacts before{.step_s = 0.2,
                         .wait_s = 0.08,
                         .trainee_cpu_s = 0.1,
                         .worker_cpu_s = 0.28,
                         .cpu_known = true,
                         .cores = 2,
                         .torch_threads = 2,
                         .workers = 2};
  const StepPrediction p = predict_step(before, {0.02, 0.02, 0.02, 2});
  EXPECT_NEAR(p.compute_alone_s, 0.1 / 1.75, 1e-9);
  EXPECT_GE(p.after_s, 0.06);  // (0.1 + 0.02) / 2
  EXPECT_LE(p.after_s, 0.1 / 1.75 + 0.02 / 2);
  EXPECT_EQ(p.io_s, 0);
}

TEST(StepModel, OnAGpuTheComputeStaysAsItWas) {
  const StepFacts before{.step_s = 0.2,
                         .wait_s = 0.15,
                         .trainee_cpu_s = 0.05,
                         .worker_cpu_s = 0.35,
                         .cpu_known = true,
                         .cores = 2,
                         .torch_threads = 2,
                         .workers = 2,
                         .gpu = true};
  EXPECT_NEAR(predict_step(before, {0.02, 0.02, 0.02, 2}).after_s, 0.053, 0.006);
}

TEST(StepModel, ReadingThatTheWorkersWaitForStays) {
  const StepFacts before{.step_s = 0.2,
                         .wait_s = 0.15,
                         .trainee_cpu_s = 0.05,
                         .worker_cpu_s = 0.04,
                         .cpu_known = true,
                         .cores = 2,
                         .torch_threads = 2,
                         .workers = 2};
  const StepPrediction p = predict_step(before, {0.01, 0.01, 0.01, 2});
  EXPECT_NEAR(p.io_s, 0.36, 1e-9);
  EXPECT_GT(p.after_s, 0.18);
}

// Neighbours on the machine make workers wait for a core, which looks like reading.
TEST(StepModel, AStarvedRunIsNotPutDownToReading) {
  const StepFacts before{.step_s = 1.28,
                         .wait_s = 0.17,
                         .trainee_cpu_s = 0.13,
                         .worker_cpu_s = 0.19,
                         .cpu_known = true,
                         .cores = 2,
                         .torch_threads = 1,
                         .workers = 2};
  EXPECT_TRUE(is_starved(before));
  const StepPrediction p = predict_step(before, {0.02, 0.02, 0.02, 2});
  EXPECT_EQ(p.io_s, 0);
  EXPECT_NEAR(p.after_s, 1.11, 0.03);
}

TEST(StepModel, LoadingInTheMainThreadIsTakenOutOfIt) {
  const StepFacts before{.step_s = 0.2,
                         .wait_s = 0.12,
                         .trainee_cpu_s = 0.28,
                         .worker_cpu_s = 0,
                         .cpu_known = true,
                         .cores = 2,
                         .torch_threads = 2,
                         .workers = 0};
  const StepPrediction p = predict_step(before, {0.02, 0.02, 0.02, 2});
  EXPECT_NEAR(p.compute_alone_s, 0.08, 1e-9);
  EXPECT_NEAR(p.after_s, 0.09, 0.01);
}

}  // namespace
}  // namespace stoker::watch
