// The two cgroup figures that the machine floor does not keep: CPU throttling and OOM kills, v1 and v2.
#pragma once

#include <cstdint>

#include "stoker/base/status.h"
#include "stoker/machine/machine.h"

namespace stoker::watch {

struct Throttling {
  std::uint64_t periods = 0;    // enforcement periods so far
  std::uint64_t throttled = 0;  // of these, the ones in which the group ran out of quota
};

// Of the calling process's own cgroup. Unavailable: no CPU controller is visible, or no quota is counted.
Signal<Throttling> cgroup_throttling(const machine::Root& root);
// Processes of the group that the kernel has killed for memory so far.
Signal<std::uint64_t> cgroup_oom_kills(const machine::Root& root);

}  // namespace stoker::watch
