// What the cgroup has been made to feel of its limits: throttled periods and kills for memory.
#include <optional>
#include <string>

#include "machine/cgroups.h"
#include "machine/proc.h"
#include "stoker/machine/process.h"

namespace stoker::machine {
namespace {

std::optional<std::uint64_t> counter(std::string_view text, std::string_view key) {
  const auto value = value_of(text, key);
  return value ? parse_number(*value) : std::nullopt;
}

}  // namespace

// A level without a quota counts no periods.
Signal<Throttling> cgroup_throttling(const Root& root) {
  bool visible = false;
  for (const CgroupLevel& level : cgroup_levels(root, "cpu")) {
    const auto text = read_text(level.directory / "cpu.stat");
    if (!text) continue;
    visible = true;
    const auto periods = counter(*text, "nr_periods ");
    const auto throttled = counter(*text, "nr_throttled ");
    if (periods && throttled && *periods > 0) return Throttling{*periods, *throttled};
  }
  return Signal<Throttling>::unavailable(visible ? "no CPU quota is enforced on this cgroup"
                                                 : "no cpu.stat of this cgroup is visible");
}

Signal<std::uint64_t> cgroup_oom_kills(const Root& root) {
  for (const CgroupLevel& level : cgroup_levels(root, "memory")) {
    for (const char* name : {"memory.events", "memory.oom_control"}) {  // v2, v1
      const auto text = read_text(level.directory / name);
      const auto kills = text ? counter(*text, "oom_kill ") : std::nullopt;
      if (kills) return *kills;
    }
  }
  return Signal<std::uint64_t>::unavailable("no OOM kill counter of this cgroup is visible");
}

}  // namespace stoker::machine
