// GPU facts by NVML, found with dlopen: no header and no link, and no GPU is needed to build or to ask.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stoker/base/status.h"

namespace stoker::machine {

struct GpuFacts {
  std::string name;
  Signal<std::uint64_t> memory_bytes;
  Signal<std::uint64_t> memory_used_bytes;
  Signal<std::uint64_t> memory_of_processes_bytes;  // of the compute processes that this one may see
  Signal<int> compute_capability;                   // 75 is sm_75
  Signal<double> busy;                              // share, 0–1
  Signal<double> power_w;
  Signal<int> temperature_c;
};

// The driver's management library.
// Threads: one Nvml may be shared. Lifetime: shuts NVML down when the last copy of what open() gave is gone.
class Nvml {
 public:
  // Errors: kUnsupported (no library, no driver, or one that does not answer: why).
  static Result<Nvml> open(const std::string& library = "libnvidia-ml.so.1");
  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) noexcept;
  ~Nvml();

  Signal<std::string> driver_version() const;
  Signal<int> driver_cuda_version() const;  // 12040 is 12.4
  std::vector<GpuFacts> gpus() const;

 private:
  struct Table;
  explicit Nvml(std::unique_ptr<Table> table);
  std::unique_ptr<Table> table_;
};

}  // namespace stoker::machine
