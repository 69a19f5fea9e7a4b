// The Python environment that `python` would start, read from its files: nothing is imported and nothing is run, so
// that asking costs a millisecond where `import torch` costs seconds.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stoker/base/status.h"
#include "stoker/machine/machine.h"
#include "stoker/machine/platform.h"

namespace stoker::machine {

struct PythonFacts {
  Signal<std::filesystem::path> executable;
  Signal<std::string> version;                  // "3.11.7"; "3.11" where only the minor one can be read
  std::string kind;                             // "venv", "conda", "system"
  std::vector<std::filesystem::path> packages;  // site-packages in the order in which Python searches them

  // Versions by dist-info, local tag included: "2.10.0+cu128".
  Signal<std::string> torch;
  Signal<std::string> torch_cuda;  // "12.8"; unavailable: "CPU build", "ROCm build 6.3" or no torch
  Signal<std::string> torchvision;
  Signal<std::string> numpy;
  Signal<std::string> pillow;
};

// `python`: a path to look at instead of the one in $VIRTUAL_ENV, $CONDA_PREFIX or $PATH (`python`, then `python3`).
PythonFacts python_facts(const Root& root = {}, const Environment& environment = process_environment(),
                         const std::filesystem::path& python = {});

// The version that a distribution has among `packages`, by its dist-info folder; names compare as PEP 503 says.
Signal<std::string> installed_version(const std::vector<std::filesystem::path>& packages, const std::string& name);

}  // namespace stoker::machine
