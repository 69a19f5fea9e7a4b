// What a process, and this process's cgroup, have used so far: counters as the kernel keeps them. Rates and curves over
// time are the recorder's.
//
// Threads: every function may be called from any thread. Nothing is cached.
#pragma once

#include <cstdint>
#include <vector>

#include "stoker/base/status.h"
#include "stoker/machine/machine.h"

namespace stoker::machine {

struct ProcessStat {
  std::uint64_t cpu_ticks = 0;     // user and system, of all its threads; sysconf(_SC_CLK_TCK) of them are a second
  std::uint64_t reaped_ticks = 0;  // the same of its children that have ended and been waited for, and of theirs
  std::uint64_t start_ticks = 0;   // since boot; tells a process from a later one of the same pid
  std::uint64_t rss_bytes = 0;
  int parent = 0;
  char state = '?';  // 'R', 'S', …; 'Z': has ended and was not waited for
};
Signal<ProcessStat> process_stat(int pid, const Root& root = {});

struct ProcessIo {
  std::uint64_t read_bytes = 0;  // from storage; the page cache is not in it
  std::uint64_t write_bytes = 0;
};
Signal<ProcessIo> process_io(int pid, const Root& root = {});

// Proportional set size: pages shared by n processes count 1/n.
// Cost: the kernel walks the process's page tables.
Signal<std::uint64_t> process_pss_bytes(int pid, const Root& root = {});

// All descendants of `pid`, nearest first; without `pid` itself.
std::vector<int> descendants(int pid, const Root& root = {});

// True when `pid` runs (a zombie does not) and, unless `start_ticks` is 0, is the process that started then.
bool process_alive(int pid, std::uint64_t start_ticks = 0, const Root& root = {});

struct Throttling {
  std::uint64_t periods = 0;    // enforcement periods so far
  std::uint64_t throttled = 0;  // of these, the ones in which the group ran out of quota
};
// Of the innermost cgroup above this process that enforces a CPU quota.
Signal<Throttling> cgroup_throttling(const Root& root = {});

// Processes of this process's cgroup that the kernel has killed for memory so far.
Signal<std::uint64_t> cgroup_oom_kills(const Root& root = {});

}  // namespace stoker::machine
