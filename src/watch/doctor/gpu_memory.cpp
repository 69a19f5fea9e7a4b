#include <fmt/format.h>

#include "stoker/base/units.h"
#include "watch/doctor/checks.h"

namespace stoker::watch {

// A dead process, or one in another container, may still hold memory that no process list shows.
void check_gpu_memory(const Facts& facts, DoctorFindings& findings) {
  if (!facts.has_gpu()) return;
  for (const auto& gpu : *facts.gpus) {
    if (!gpu.memory_bytes || !gpu.memory_used_bytes) continue;
    const std::uint64_t used = *gpu.memory_used_bytes;
    const std::uint64_t seen = gpu.memory_of_processes_bytes ? *gpu.memory_of_processes_bytes : 0;
    if (used * 10 < *gpu.memory_bytes) continue;  // the driver's own share
    std::string what =
        fmt::format("{} of {} on the {} are in use", format_size(used), format_size(*gpu.memory_bytes), gpu.name);
    if (gpu.memory_of_processes_bytes && seen < used / 2) {
      what += fmt::format(", and the processes one can see hold {}", format_size(seen));
    }
    findings.push_back(
        {"gpu_memory", Fitness::kOdd, what,
         "end old notebook kernels and workers (`nvidia-smi`, `fuser -v /dev/nvidia*`); without root, restart "
         "the runtime or container"});
  }
}

}  // namespace stoker::watch
