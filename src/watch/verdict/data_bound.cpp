// Data-bound: the step waits for its batch, or the loader's workers take the cores that the step needs.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "watch/verdict/rules.h"
#include "watch/verdict/step_model.h"

namespace stoker::watch {
namespace {

constexpr double kWaitShare = 0.10;       // of the loop, from which waiting is a finding
constexpr double kWorthPoints = 10;       // predicted gain that makes one where the wait is hidden
constexpr double kLoaderOverhead = 1.15;  // batch assembly and hand-over on top of decode and transform
constexpr double kMeasuredSpread = 0.25;  // of a rate measured for a second or two
// Without a measurement: worker CPU-seconds per batch of DataLoader over those of Stoker (low, likely, high).
constexpr double kDefaultRatio[] = {3, 5, 8};
constexpr double kLeastSpreadPoints = 5;
constexpr std::size_t kStepsForATenth = 20;

// The step without waits, its compute taken from the fastest tenth of the steady steps with a whole batch; 0 when they
// are too few to have a tenth.
double fastest_step_s(const Metrics& m) {
  double full = 0;
  for (const Step& step : m.steps) full = std::max(full, step.samples);
  std::vector<double> compute_s;
  for (const Step& step : m.steps) {
    if (step.steady() && step.samples == full) compute_s.push_back(step.compute_seconds());
  }
  if (compute_s.size() < kStepsForATenth || full == 0) return 0;
  const auto tenth = compute_s.begin() + static_cast<std::ptrdiff_t>(compute_s.size() / 10);
  std::nth_element(compute_s.begin(), tenth, compute_s.end());
  const double batch = m.samples_per_step ? *m.samples_per_step / full : 1;
  const PhaseTimes& loop = m.loop_phases;
  const double compute = loop[Phase::kCopy] + loop[Phase::kForward] + loop[Phase::kBackward] + loop[Phase::kOptimizer];
  return *tenth * batch + std::max(0.0, *m.loop_s - loop[Phase::kWait] - loop[Phase::kLoaderStart] - compute);
}

StepFacts facts_of(const Case& run) {
  const Metrics& m = run.metrics;
  StepFacts f;
  f.step_s = *m.loop_s;
  f.wait_s = m.loop_phases[Phase::kWait] + m.loop_phases[Phase::kLoaderStart];
  f.cores = m.cpu.limit ? std::max(1.0, *m.cpu.limit) : 1;
  f.cpu_known = m.cpu.trainee && m.cpu.workers && m.cpu.limit;
  f.trainee_cpu_s = f.cpu_known ? *m.cpu.trainee * f.step_s : 0;
  f.worker_cpu_s = f.cpu_known ? *m.cpu.workers * f.step_s : 0;
  f.torch_threads = run.inputs.torch_threads > 0 ? run.inputs.torch_threads : f.cores;
  f.workers = run.inputs.num_workers ? *run.inputs.num_workers : (f.worker_cpu_s > 0.02 * f.step_s ? f.cores : 0);
  f.gpu = run.inputs.gpu;
  f.fastest_s = fastest_step_s(m);
  if (!m.epochs.empty())
    f.steps_per_epoch = std::max(1.0, static_cast<double>(m.steps.size()) / static_cast<double>(m.epochs.size()));
  return f;
}

// CPU-seconds that today's loader spends on a step.
double loading_cpu(const StepFacts& f) { return f.workers > 0 ? f.worker_cpu_s : f.wait_s; }

NewLoader stoker_loader(const Case& run, const StepFacts& f) {
  NewLoader loader;
  loader.threads = std::max(1.0, f.cores);
  const auto& rate = run.inputs.stoker_images_per_cpu_second;
  if (rate && *rate > 0 && run.metrics.samples_per_step) {
    loader.cpu_s = *run.metrics.samples_per_step / *rate * kLoaderOverhead;
    loader.cpu_low_s = loader.cpu_s * (1 - kMeasuredSpread);
    loader.cpu_high_s = loader.cpu_s * (1 + kMeasuredSpread);
    return loader;
  }
  const double today = f.cpu_known ? loading_cpu(f) : f.wait_s;
  loader.cpu_s = today / kDefaultRatio[1];
  loader.cpu_low_s = today / kDefaultRatio[2];
  loader.cpu_high_s = today / kDefaultRatio[0];
  return loader;
}

// The user's own loader with as many workers as there are cores, kept over the epochs.
NewLoader more_workers(const StepFacts& f) {
  const double cpu = f.cpu_known ? loading_cpu(f) : f.wait_s;
  return {cpu, 0.9 * cpu, 1.2 * cpu, std::max(1.0, f.cores)};
}

Gain gain_of(const StepFacts& f, const StepPrediction& p) {
  const auto points = [&](double after) { return 100 * std::clamp(1 - after / f.step_s, 0.0, 0.99); };
  Gain gain{points(p.after_s), points(p.high_s), points(p.low_s)};
  gain.low = std::clamp(std::min(gain.low, gain.points - kLeastSpreadPoints), 0.0, 99.0);
  gain.high = std::clamp(std::max(gain.high, gain.points + kLeastSpreadPoints), 0.0, 99.0);
  return gain;
}

std::vector<std::string> evidence_of(const Case& run, const StepFacts& f) {
  const Metrics& m = run.metrics;
  std::vector<std::string> lines;
  lines.push_back(fmt::format("of an average step of {}, {} is waiting for data ({}), epoch starts included",
                              milliseconds(f.step_s), milliseconds(f.wait_s), percent(f.wait_s / f.step_s)));
  if (m.wait_s.count > 0) {
    lines.push_back(fmt::format("waits within an epoch: half are under {}, one in twenty over {}",
                                milliseconds(m.wait_s.p50), milliseconds(m.wait_s.p95)));
  }
  if (m.epochs.size() > 1) {
    lines.push_back(fmt::format("the first batch of an epoch takes {}", milliseconds(m.first_batch_s.p50)));
  }
  if (f.cpu_known) {
    lines.push_back(fmt::format("of {:.3g} cores the loader's workers use {:.2f} and the training process {:.2f}",
                                f.cores, *m.cpu.workers, *m.cpu.trainee));
    if (is_starved(f)) {
      lines.push_back("while it computed, the training process got less than half a core: others use this machine");
    }
  } else {
    lines.push_back("the processes' CPU time is unavailable: " +
                    (m.cpu.workers ? m.cpu.trainee.why + m.cpu.limit.why : m.cpu.workers.why));
  }
  return lines;
}

std::string rate_line(const Case& run, const StepFacts& f, const NewLoader& loader) {
  const auto& rate = run.inputs.stoker_images_per_cpu_second;
  if (!rate) {
    return fmt::format(
        "Stoker's loader is taken to need 1/{:.0f} of today's CPU time per batch, an estimate: its rate {}",
        kDefaultRatio[1], "was not measured (" + rate.why + ")");
  }
  std::string line = fmt::format("Stoker's loader, measured on this run's files: {} images per CPU-second",
                                 format_count(static_cast<std::uint64_t>(*rate)));
  if (f.cpu_known && loading_cpu(f) > 0) {
    line +=
        fmt::format(", {} a batch where today's takes {}", milliseconds(loader.cpu_s), milliseconds(loading_cpu(f)));
  }
  return line;
}

// Where it is not known whether accelerate takes the loader, the fix is to try, and says so.
bool may_accelerate(const VerdictInputs& in) { return !in.accelerated && (!in.accelerable || *in.accelerable); }

void choose_fix(const Case& run, const StepFacts& f, Finding& finding) {
  if (run.inputs.accelerated) {
    finding.fix =
        "The loader is Stoker's already and its threads are the limit: give it fewer pixels to decode, by "
        "storing the images once at about the size that the transforms ask for";
    finding.gain = Signal<Gain>::unavailable("needs a run with the smaller files");
    return;
  }
  const bool accelerate = may_accelerate(run.inputs);
  const NewLoader loader = accelerate ? stoker_loader(run, f) : more_workers(f);
  const StepPrediction p = predict_step(f, loader);
  finding.gain = gain_of(f, p);
  finding.saved_s = std::max(0.0, f.step_s - p.after_s) * static_cast<double>(run.metrics.steps.size());
  finding.model = p.to_json();
  finding.model.set("loader_cpu_ms", loader.cpu_s * 1e3).set("worker_cpu_ms", f.worker_cpu_s * 1e3);
  finding.model.set("trainee_cpu_ms", f.trainee_cpu_s * 1e3).set("cores", f.cores);
  finding.model.set("rate_measured", run.inputs.stoker_images_per_cpu_second.value.has_value());
  if (accelerate) {
    finding.fix = "Load the batches with Stoker's threads in place of the DataLoader's workers";
    finding.fix_line = "loader = stoker.accelerate(loader)";
    finding.evidence.push_back(rate_line(run, f, loader));
    if (!run.inputs.accelerable) {
      finding.evidence.push_back(
          fmt::format("whether stoker.accelerate takes this loader is unknown ({}); the gain is an estimate that holds "
                      "if it does",
                      run.inputs.accelerable.why));
    }
  } else {
    finding.fix = fmt::format(
        "Give the loader a worker a core and keep them over the epochs (stoker.accelerate would leave it as it is: it "
        "does not know {})",
        run.inputs.not_known);
    finding.fix_line = fmt::format("DataLoader(..., num_workers={:.0f}, persistent_workers=True)", f.cores);
  }
}

}  // namespace

std::optional<Finding> data_bound(const Case& run) {
  const StepFacts f = facts_of(run);
  Finding finding;
  finding.evidence = evidence_of(run, f);
  finding.confidence = confidence_of(run.metrics);
  choose_fix(run, f, finding);
  const double wait = f.wait_s / f.step_s;
  const bool worth = finding.gain && (*finding.gain).points >= kWorthPoints;
  if (wait < kWaitShare && !worth) return std::nullopt;
  if (is_starved(f)) finding.confidence = Confidence::kLow;
  if (!f.cpu_known) finding.confidence = std::min(finding.confidence, Confidence::kMedium);
  const bool estimate = !run.inputs.stoker_images_per_cpu_second || !run.inputs.accelerable;
  if (estimate && may_accelerate(run.inputs)) {
    finding.confidence = std::min(finding.confidence, Confidence::kMedium);
  }
  finding.says = wait >= kWaitShare ? fmt::format("The training waits for data {} of its loop", percent(wait))
                                    : fmt::format("The loader's workers take {:.2f} of {:.3g} cores from the training",
                                                  f.worker_cpu_s / f.step_s, f.cores);
  if (finding.saved_s == 0) finding.saved_s = f.wait_s * static_cast<double>(run.metrics.steps.size()) * 0.5;
  return finding;
}

}  // namespace stoker::watch
