#include "watch/doctor/checks.h"

namespace stoker::watch {
namespace {

std::string presence_advice(const Facts& facts) {
  switch (facts.platform.host) {
    case machine::Host::kColab:
      return "choose Runtime > Change runtime type > T4 GPU; if Colab refuses, its usage limit is reached: wait some "
             "hours";
    case machine::Host::kKaggle:
      return "choose an accelerator in the notebook's settings (its weekly quota may be used up)";
    default:
      return facts.platform.container.empty() ? "check `nvidia-smi`; without a driver torch runs on the CPU"
                                              : "start the container with `--gpus all`";
  }
}

}  // namespace

// Training goes on quietly on the CPU, a hundred times slower, when nobody says that the GPU is not there.
void check_gpu_presence(const Facts& facts, DoctorFindings& findings) {
  const bool cuda_torch = facts.python.torch_cuda.value.has_value();
  if (!facts.has_gpu()) {
    if (!facts.expect_gpu && !cuda_torch) return;
    const std::string why = facts.gpus ? "the driver shows none" : facts.gpus.why;
    findings.push_back(
        {"gpu_presence", facts.expect_gpu ? Fitness::kUnfit : Fitness::kOdd,
         "there is no GPU: " + why + (cuda_torch ? "; torch is a CUDA build and will run on the CPU" : ""),
         presence_advice(facts)});
    return;
  }
  if (facts.python.torch && facts.python.torch_cuda.why == "CPU build") {
    findings.push_back({"gpu_presence", facts.expect_gpu ? Fitness::kUnfit : Fitness::kOdd,
                        "there is a GPU, but torch " + *facts.python.torch + " is a CPU build and cannot use it",
                        facts.is_hosted()
                            ? "go back to the image's own torch: reset the runtime and do not install torch"
                            : "install a CUDA build of torch"});
  }
}

}  // namespace stoker::watch
