#include <fmt/format.h>

#include "watch/doctor/checks.h"

namespace stoker::watch {

// Within one major version of CUDA any driver runs any wheel; across it an older driver does not.
void check_gpu_driver(const Facts& facts, DoctorFindings& findings) {
  if (!facts.driver_cuda || !facts.python.torch_cuda) return;
  const int wheel = cuda_number(*facts.python.torch_cuda);
  if (wheel == 0 || *facts.driver_cuda / 1000 >= wheel / 1000) return;
  const std::string what =
      fmt::format("the driver ({}) reaches CUDA {}, and torch {} is built for CUDA {}",
                  facts.driver ? *facts.driver : "version not known", cuda_name(*facts.driver_cuda),
                  facts.python.torch ? *facts.python.torch : "here", *facts.python.torch_cuda);
  const std::string advice =
      facts.is_hosted()
          ? "the driver is not yours to change here: go back to the image's own torch (reset the runtime, do not "
            "install torch)"
          : fmt::format("install a torch wheel built for CUDA {}.x, or a newer driver", *facts.driver_cuda / 1000);
  findings.push_back({"gpu_driver", Fitness::kUnfit, what, advice});
}

}  // namespace stoker::watch
