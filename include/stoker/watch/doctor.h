// Is this machine fit to train on, and what is odd about it? The first question of a session.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/machine/machine.h"
#include "stoker/machine/platform.h"

namespace stoker::watch {

enum class Fitness {
  kOdd,    // works, but costs time or will surprise
  kUnfit,  // training as asked for cannot work
};
const char* name(Fitness fitness);

struct DoctorFinding {
  std::string check;  // "cpu_quota": the file under src/watch/doctor/ that found it
  Fitness fitness = Fitness::kOdd;
  std::string what;
  std::string advice;
};

struct DoctorOptions {
  std::filesystem::path directory = ".";  // where the data and runs will lie
  bool expect_gpu = false;                // then a machine without one is unfit
  std::filesystem::path python;           // empty: the one that $VIRTUAL_ENV, $CONDA_PREFIX or $PATH gives
  machine::Root root;
  machine::Environment environment = machine::process_environment();
  std::string nvml_library = "libnvidia-ml.so.1";
};

struct DoctorLine {
  std::string label;
  std::string text;
};

struct DoctorReport {
  std::vector<DoctorLine> machine;      // about ten lines
  std::vector<DoctorFinding> findings;  // unfit ones first
  Json json;                            // stoker.doctor.v1: the facts as numbers, and the findings
  bool fit() const;
};

// Blocks for some milliseconds: reads files and asks the driver; starts no process and imports nothing.
DoctorReport doctor(const DoctorOptions& options = {});

}  // namespace stoker::watch
