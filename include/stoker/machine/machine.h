// What this computer is: the limits that really bind, not the ones that the host has. Missing is not zero: every figure
// is a Signal that says why it could not be read.
//
// Threads: every function may be called from any thread. Nothing here is cached; a call reads the files anew.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "stoker/base/status.h"
#include "stoker/machine/gpu.h"

namespace stoker::machine {

// Where /proc, /sys and the rest are read from, so that tests feed recorded machines: root / "proc/meminfo" and so on.
struct Root {
  std::filesystem::path path = "/";

  // `absolute` as it lies under this root.
  std::filesystem::path operator/(const std::filesystem::path& absolute) const {
    return path / absolute.relative_path();
  }
  // False for a recorded machine: then no system call may add what the files do not say.
  bool is_this_machine() const { return path == "/"; }
};

// CPUs that this process may really use: the smallest of online CPUs, affinity, cpuset, and the CFS quota of every
// cgroup (v1 and v2) up the ancestry.
struct CpuFacts {
  int online = 0;        // what the host shows
  Signal<int> affinity;  // sched_getaffinity and cpuset
  Signal<double> quota;  // cores of CFS quota; unavailable: no limit set
  int usable = 1;        // the answer, quota rounded up, ≥ 1
  std::string model;     // "AMD EPYC 7B12"
  std::string bound_by;  // what `usable` comes from: "online CPUs", "affinity", "cpuset /…", "CPU quota /…/cpu.max"
};
CpuFacts cpu_facts(const Root& root = {});

// Bytes of memory: limit is the smallest of RAM and every cgroup's limit; used is usage − inactive_file − active_file
// where that limit lies; left is the least that any level still gives, which may be a larger group with busy siblings.
struct MemoryFacts {
  Signal<std::uint64_t> limit;
  Signal<std::uint64_t> used;
  Signal<std::uint64_t> left;
  Signal<std::uint64_t> ram;  // of the host, whatever the limit
  std::string bound_by;       // "RAM", "cgroup v2 /sys/fs/cgroup/…", …
};
MemoryFacts memory_facts(const Root& root = {});

enum class MountKind { kLocal, kNetwork, kFuse, kTmpfs, kOverlay, kOther };
const char* name(MountKind kind);
// True where each file costs a round trip: network and FUSE.
bool is_remote(MountKind kind);

struct Mount {
  std::filesystem::path point;
  std::string filesystem;  // "ext4", "fuse.gcsfuse", …
  std::string source;
  MountKind kind = MountKind::kOther;
  bool read_only = false;
};
// In mount order: a later one on the same point hides the earlier.
Result<std::vector<Mount>> mounts(const Root& root = {});
// The mount that holds `path`; for a path that is not there yet, the one that holds its nearest existing parent.
Result<Mount> mount_of(const std::filesystem::path& path, const Root& root = {});

// What /dev/shm gives: DataLoader workers pass their batches through it.
struct ShmFacts {
  Signal<std::uint64_t> size;
  Signal<std::uint64_t> free;  // unavailable on a recorded machine
};
ShmFacts shm_facts(const Root& root = {});

// Soft limits of this process; "unlimited" is unavailable with that reason.
struct LimitFacts {
  Signal<std::uint64_t> open_files;
  Signal<std::uint64_t> processes;
  Signal<std::uint64_t> file_size_bytes;
  Signal<std::uint64_t> address_space_bytes;
  Signal<std::uint64_t> locked_memory_bytes;
};
LimitFacts limit_facts(const Root& root = {});

}  // namespace stoker::machine
