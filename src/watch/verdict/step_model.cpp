#include "watch/verdict/step_model.h"

#include <algorithm>

namespace stoker::watch {
namespace {

struct Range {
  double low = 0;
  double mid = 0;
  double high = 0;
};

double utilisation(const StepFacts& f) { return (f.trainee_cpu_s + f.worker_cpu_s) / (f.cores * f.step_s); }

// T′: the trainee's CPU time without what its main thread spent on loading.
double compute_cpu(const StepFacts& f) {
  const double loading = f.workers == 0 ? f.wait_s : 0;
  return std::max(0.0, f.trainee_cpu_s - loading);
}

// What the workers' company costs: on a full CPU, T′ spread over the threads says how long compute would take alone. It
// is too long where threads spin at barriers while a worker holds the core of one of them, for spinning is CPU time
// too.
double stretched_back(const StepFacts& f, double measured, const ModelParameters& parameters) {
  if (utilisation(f) < parameters.saturated) return measured;
  const double threads = std::clamp(f.torch_threads, 1.0, f.cores);
  const double cpu = compute_cpu(f);
  return std::clamp(cpu / (1 + parameters.thread_efficiency * (threads - 1)), std::min(measured, cpu / f.cores),
                    measured);
}

// C₀: the step's compute with no worker beside it. On a GPU, or where the main thread loads, what was measured. Else
// the fastest steps have shown it: those at an epoch's end, when the workers have read all, or while their queue was
// full.
Range compute_alone(const StepFacts& f, const ModelParameters& parameters) {
  const double measured = f.step_s - f.wait_s;
  if (!f.cpu_known) return {0.7 * measured, measured, measured};
  if (f.gpu) return {0.85 * measured, 0.97 * measured, measured};
  if (f.workers == 0) return {0.9 * measured, measured, measured};
  const double modelled = stretched_back(f, measured, parameters);
  const double mid = f.fastest_s > 0 ? std::min(f.fastest_s, modelled) : modelled;
  return {std::min(0.9 * mid, compute_cpu(f) / f.cores), mid, measured};
}

// Time that a worker spent neither computing nor, cores being free, waiting for one: reading. On a machine whose cores
// others hold, that cannot be told from waiting for a core, and is not claimed.
double io_seconds(const StepFacts& f, const ModelParameters& parameters) {
  if (!f.cpu_known || f.workers == 0 || utilisation(f) >= parameters.saturated || is_starved(f, parameters)) return 0;
  const bool workers_always_busy = f.wait_s > 0.1 * f.step_s;
  return workers_always_busy ? std::max(0.0, f.workers * f.step_s - f.worker_cpu_s) : 0;
}

// At best compute and loading overlap wholly; at worst the loader's work delays the step by its share of the cores.
double overlapped(const StepFacts& f, double compute, double cpu, double load_cpu, double load_wall) {
  return std::max({compute, (cpu + load_cpu) / f.cores, load_wall});
}

}  // namespace

bool is_starved(const StepFacts& f, const ModelParameters& parameters) {
  return f.cpu_known && compute_cpu(f) < parameters.starved * (f.step_s - f.wait_s);
}

StepPrediction predict_step(const StepFacts& f, const NewLoader& loader, const ModelParameters& parameters) {
  const Range compute = compute_alone(f, parameters);
  const double cpu = f.cpu_known ? std::min(compute_cpu(f), compute.mid * f.cores) : compute.mid;
  const double io = io_seconds(f, parameters);
  const auto load_wall = [&](double load_cpu) { return (load_cpu + io) / loader.threads; };
  const auto epoch_start = [&](double load_cpu) { return load_wall(load_cpu) / f.steps_per_epoch; };
  const auto best = [&](double c, double load) {
    return overlapped(f, c, std::min(cpu, c * f.cores), load, load_wall(load)) + epoch_start(load);
  };
  const auto worst = [&](double c, double load) {
    return std::max(c + load / f.cores, load_wall(load)) + epoch_start(load);
  };
  StepPrediction p;
  p.compute_alone_s = compute.mid;
  p.io_s = io;
  p.after_s = (best(compute.mid, loader.cpu_s) + worst(compute.mid, loader.cpu_s)) / 2;
  p.low_s = std::min(p.after_s, best(compute.low, loader.cpu_low_s));
  p.high_s = std::max(p.after_s, worst((compute.mid + compute.high) / 2, loader.cpu_high_s));
  return p;
}

Json StepPrediction::to_json() const {
  return Json::object({{"after_ms", after_s * 1e3},
                       {"after_low_ms", low_s * 1e3},
                       {"after_high_ms", high_s * 1e3},
                       {"compute_alone_ms", compute_alone_s * 1e3},
                       {"io_ms", io_s * 1e3}});
}

}  // namespace stoker::watch
