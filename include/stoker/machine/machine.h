// What this computer is: the limits that really bind, not the ones that the host has. Missing is not zero: every figure
// is a Signal that says why it could not be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "stoker/base/status.h"

namespace stoker::machine {

// Where /proc and /sys are read from, so that tests feed recorded machines: root / "proc/meminfo" and so on.
struct Root {
  std::filesystem::path path = "/";
};

// CPUs that this process may really use: the smallest of online CPUs, affinity, cpuset, and the CFS quota of every
// cgroup (v1 and v2) up the ancestry.
struct CpuFacts {
  int online = 0;        // what the host shows
  Signal<int> affinity;  // sched_getaffinity and cpuset
  Signal<double> quota;  // cores of CFS quota; unavailable: no limit set
  int usable = 1;        // the answer, quota rounded up, ≥ 1
  std::string model;     // "AMD EPYC 7B12"
};
CpuFacts cpu_facts(const Root& root = {});

// Bytes of memory: limit is the smallest of RAM and every cgroup's limit; used is usage − inactive_file − active_file.
struct MemoryFacts {
  Signal<std::uint64_t> limit;
  Signal<std::uint64_t> used;
  Signal<std::uint64_t> left;
  std::string bound_by;  // "RAM", "cgroup v2 /sys/fs/cgroup/…", …
};
MemoryFacts memory_facts(const Root& root = {});

enum class MountKind { kLocal, kNetwork, kFuse, kTmpfs, kOverlay, kOther };
const char* name(MountKind kind);

struct Mount {
  std::filesystem::path point;
  std::string filesystem;  // "ext4", "fuse.gcsfuse", …
  std::string source;
  MountKind kind = MountKind::kOther;
  bool read_only = false;
};
Result<std::vector<Mount>> mounts(const Root& root = {});
// The mount that holds `path`.
Result<Mount> mount_of(const std::filesystem::path& path, const Root& root = {});

struct GpuFacts {
  std::string name;
  std::uint64_t memory_bytes = 0;
  Signal<std::uint64_t> memory_used_bytes;
  Signal<int> compute_capability;  // 75 is sm_75
  Signal<double> busy;             // share, 0–1
  Signal<double> power_w;
  Signal<int> temperature_c;
};

// NVML through dlopen. Errors of open(): kUnsupported (no driver: why).
class Nvml {
 public:
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
