#include <array>

#include <fmt/format.h>

#include "watch/doctor/checks.h"

namespace stoker::watch {
namespace {

// What the official wheels hold code for, by their CUDA version: the least capability, and the greatest major one.
struct Wheels {
  int cuda;
  int oldest;
  int newest_major;
};
constexpr std::array<Wheels, 7> kWheels = {{{11080, 50, 9},
                                            {12010, 50, 9},
                                            {12040, 50, 9},
                                            {12060, 50, 9},
                                            {12080, 70, 12},
                                            {12090, 70, 12},
                                            {13000, 75, 12}}};

const Wheels* wheels_for(int cuda) {
  for (const Wheels& wheels : kWheels) {
    if (wheels.cuda == cuda) return &wheels;
  }
  return nullptr;
}

std::string newest_wheel_for(int capability) {
  const Wheels* best = nullptr;
  for (const Wheels& wheels : kWheels) {
    if (capability >= wheels.oldest && capability / 10 <= wheels.newest_major) best = &wheels;
  }
  return best == nullptr ? "" : fmt::format("cu{}", best->cuda / 100 + best->cuda % 100 / 10);
}

std::string architecture_advice(const Facts& facts, int capability, bool too_old) {
  if (facts.platform.host == machine::Host::kKaggle && too_old) return "choose the accelerator GPU T4 x2 instead";
  const std::string wheel = newest_wheel_for(capability);
  if (wheel.empty()) return too_old ? "use another GPU" : "use the newest torch wheel";
  return fmt::format("use another GPU or a torch wheel with the tag +{}", wheel);
}

}  // namespace

// is_available() says True either way, and the first CUDA operation dies.
void check_gpu_architecture(const Facts& facts, DoctorFindings& findings) {
  if (!facts.has_gpu() || !facts.python.torch_cuda) return;
  const Wheels* wheels = wheels_for(cuda_number(*facts.python.torch_cuda));
  for (const auto& gpu : *facts.gpus) {
    if (!gpu.compute_capability) continue;
    const int capability = *gpu.compute_capability;
    if (wheels == nullptr) {
      findings.push_back(
          {"gpu_architecture", Fitness::kOdd,
           fmt::format(
               "whether torch for CUDA {} has code for the {} (sm_{}) was not checked: no such wheel in the table",
               *facts.python.torch_cuda, gpu.name, capability),
           "try `python -c \"import torch; torch.ones(1, device='cuda') + 1\"`"});
      return;
    }
    const bool too_old = capability < wheels->oldest;
    if (!too_old && capability / 10 <= wheels->newest_major) continue;
    findings.push_back({"gpu_architecture", Fitness::kUnfit,
                        fmt::format("the {} (sm_{}) is too {} for torch {}, whose wheels hold code for sm_{} to sm_{}x",
                                    gpu.name, capability, too_old ? "old" : "new",
                                    facts.python.torch ? *facts.python.torch : *facts.python.torch_cuda, wheels->oldest,
                                    wheels->newest_major),
                        architecture_advice(facts, capability, too_old)});
  }
}

}  // namespace stoker::watch
