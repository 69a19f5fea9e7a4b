// How long a step will take once the loader is replaced; docs/design/verdict.md derives the formulas.
#pragma once

#include "stoker/base/json.h"

namespace stoker::watch {

// Seconds per training step of the whole loop, epoch starts included, unless said otherwise.
struct StepFacts {
  double step_s = 0;         // S
  double wait_s = 0;         // loader start and waits in it
  double trainee_cpu_s = 0;  // T, CPU-seconds of the trainee's process
  double worker_cpu_s = 0;   // W, CPU-seconds of its workers
  bool cpu_known = false;    // T and W were sampled
  double cores = 1;          // N
  double torch_threads = 1;  // p
  double workers = 0;        // 0: the main thread loads
  bool gpu = false;
  double steps_per_epoch = 1e9;
  // The step without its waits when its compute is as short as in the fastest tenth of the full-size steps; 0: too few.
  double fastest_s = 0;
};

// The loader that takes the old one's place.
struct NewLoader {
  double cpu_s = 0;  // L, CPU-seconds per step
  double cpu_low_s = 0;
  double cpu_high_s = 0;
  double threads = 1;  // k
};

struct StepPrediction {
  double after_s = 0;
  double low_s = 0;
  double high_s = 0;
  double compute_alone_s = 0;  // C₀
  double io_s = 0;             // per step, in which a worker neither computed nor waited for a core
  Json to_json() const;
};

// The parts of the model that are judged, not measured.
struct ModelParameters {
  double thread_efficiency = 0.75;  // what a second, third, … torch thread adds to the first on a CPU step
  double starved = 0.5;             // cores that a computing trainee uses, below which others hold the machine
  double saturated = 0.85;          // share of the cores in use from which workers and step compete
};

// The trainee computed but got less than half a core for it: other processes hold the machine.
bool is_starved(const StepFacts& before, const ModelParameters& parameters = {});

StepPrediction predict_step(const StepFacts& before, const NewLoader& loader, const ModelParameters& parameters = {});

}  // namespace stoker::watch
