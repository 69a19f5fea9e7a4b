#include <fmt/format.h>

#include "watch/doctor/checks.h"

namespace stoker::watch {

// What examples written on an A100 take for granted.
void check_gpu_features(const Facts& facts, DoctorFindings& findings) {
  if (!facts.has_gpu()) return;
  for (const auto& gpu : *facts.gpus) {
    if (!gpu.compute_capability || *gpu.compute_capability >= 80) continue;
    const int capability = *gpu.compute_capability;
    std::string lacks = "bfloat16 and FlashAttention 2";
    std::string advice = "use float16 with a GradScaler, and attention \"sdpa\"";
    if (capability < 70) {
      lacks = "torch.compile (Triton needs 7.0), Tensor Cores, " + lacks;
      advice = "leave torch.compile out; mixed precision saves memory here, not time";
    }
    findings.push_back(
        {"gpu_features", Fitness::kOdd, fmt::format("the {} (sm_{}) lacks {}", gpu.name, capability, lacks), advice});
    return;
  }
}

}  // namespace stoker::watch
