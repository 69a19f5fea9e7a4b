// NVML's structures as far as they are used here, shared with the stand-in library of the tests. Private to the room.
#pragma once

namespace stoker::machine::nvml {

using Device = void*;  // opaque

struct Memory {
  unsigned long long total, free, used;
};

struct Utilization {
  unsigned int gpu, memory;
};

// As of ..._v2 and ..._v3 of nvmlDeviceGetComputeRunningProcesses.
struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_memory;  // all bits set: not known
  unsigned int gpu_instance, compute_instance;
};

}  // namespace stoker::machine::nvml
