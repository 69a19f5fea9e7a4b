#include "watch/recorder/cgroup.h"

#include <optional>
#include <string>

#include "machine/cgroups.h"
#include "watch/recorder/proc.h"

namespace stoker::watch {

// The innermost level that enforces a quota; a level without one counts no periods.
Signal<Throttling> cgroup_throttling(const Root& root) {
  bool visible = false;
  for (const auto& level : machine::cgroup_levels(root, "cpu")) {
    const auto text = read_small(level.directory / "cpu.stat");
    if (!text) continue;
    visible = true;
    const auto periods = keyed_number(*text, "nr_periods");
    const auto throttled = keyed_number(*text, "nr_throttled");
    if (periods && throttled && *periods > 0) return Throttling{*periods, *throttled};
  }
  return Signal<Throttling>::unavailable(visible ? "no CPU quota is enforced on this cgroup"
                                                 : "no cpu.stat of this cgroup is visible");
}

Signal<std::uint64_t> cgroup_oom_kills(const Root& root) {
  for (const auto& level : machine::cgroup_levels(root, "memory")) {
    for (const char* name : {"memory.events", "memory.oom_control"}) {
      const auto text = read_small(level.directory / name);
      const auto kills = text ? keyed_number(*text, "oom_kill") : std::nullopt;
      if (kills) return *kills;
    }
  }
  return Signal<std::uint64_t>::unavailable("no OOM kill counter of this cgroup is visible");
}

}  // namespace stoker::watch
