// What binds a run, with evidence, one fix and the gain to expect from it. docs/design/verdict.md has the model.
//
// Gain is the share of step time saved, 1 − after/before, in points of 100.
#pragma once

#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/base/status.h"
#include "stoker/watch/metrics.h"
#include "stoker/watch/run_data.h"

namespace stoker::watch {

enum class Confidence { kLow, kMedium, kHigh };
const char* name(Confidence confidence);

// Points of 100; the truth is expected between low and high.
struct Gain {
  double points = 0;
  double low = 0;
  double high = 0;
};

struct Finding {
  std::string cause;  // its id in src/watch/verdict/rules.cpp: "data-bound", …
  std::string says;   // one sentence in plain words
  std::vector<std::string> evidence;
  Confidence confidence = Confidence::kMedium;
  std::string fix;       // what to do, one sentence
  std::string fix_line;  // a line to paste; may be empty
  Signal<Gain> gain = Signal<Gain>::unavailable("not predicted for this cause");
  std::string gain_of = "step time";  // or "training time", where the fix acts between steps
  double saved_s = 0;                 // of this run's training time, which ranks the findings
  Json model;                         // the figures that the prediction came from
};

// What the metrics do not hold.
struct VerdictInputs {
  // Measured on this machine with the run's own files, one thread. Without it a documented ratio is used and said.
  Signal<double> stoker_images_per_cpu_second = Signal<double>::unavailable("not measured");
  Signal<int> num_workers = Signal<int>::unavailable("the loader's arguments were not recorded");
  // Whether stoker.accelerate takes the training loader, as the hooks found while the script ran.
  Signal<bool> accelerable = Signal<bool>::unavailable("the script's loaders were not recorded");
  std::string not_known;     // where it does not: the part of the loader that it does not know
  bool accelerated = false;  // the training loader is Stoker's already
  // Of the largest model that trains: whether its convolutions run in channels_last already; false also without any.
  Signal<bool> channels_last = Signal<bool>::unavailable("the model was not recorded");
  int convolutions = 0;   // in that model; 0 also where it is not known
  bool gpu = false;       // the trainee computes on a GPU
  int torch_threads = 0;  // 0: not recorded
};
// The facts of the training loader in run.json: the largest of the recorded ones, as none is marked. Null: none is
// there.
const Json* training_loader(const Json& run);
// Reads what run.json and the trace say; the measured rate is the caller's to add.
VerdictInputs inputs_from(const RunData& data);

struct Verdict {
  std::vector<Finding> findings;  // at least one; the first is what binds
  const Finding& first() const { return findings.front(); }
};

Verdict judge(const Metrics& metrics, const VerdictInputs& inputs);

// What run.json keeps under "verdict": predicted_gain_points and its interval, step times, findings, written_utc.
Json to_json(const Verdict& verdict, const Metrics& metrics, const std::string& written_utc);

}  // namespace stoker::watch
