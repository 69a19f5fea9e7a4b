#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "machine/cgroups.h"
#include "machine/proc.h"
#include "stoker/base/text.h"
#include "stoker/machine/machine.h"

namespace stoker::machine {
namespace {

int count_processors(std::string_view cpuinfo) {
  int count = 0;
  for (const std::string_view line : split_lines(cpuinfo)) count += line.substr(0, 9) == "processor" ? 1 : 0;
  return count;
}

int online_cpus(const Root& root, std::string_view cpuinfo) {
  if (const auto list = read_text(root / "/sys/devices/system/cpu/online")) {
    if (const auto cpus = parse_cpu_list(*list); !cpus.empty()) return static_cast<int>(cpus.size());
  }
  if (const int count = count_processors(cpuinfo); count > 0) return count;
  return root.is_this_machine() ? static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))) : 1;
}

// The mask of the calling thread, as /proc shows it; the system call where /proc hides it (gVisor).
std::set<int> affinity_mask(const Root& root) {
  for (const char* file : {"/proc/thread-self/status", "/proc/self/status"}) {
    const auto status = read_text(root / file);
    if (!status) continue;
    if (const auto list = value_of(*status, "Cpus_allowed_list:")) return parse_cpu_list(*list);
  }
  std::set<int> cpus;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (!root.is_this_machine() || ::sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.insert(cpu);
  }
  return cpus;
}

struct Bound {
  std::set<int> cpus;
  std::string by;
};

// The kernel keeps the mask inside the cpuset; sandboxes that only show files may not.
Bound allowed_cpus(const Root& root) {
  Bound bound{affinity_mask(root), "affinity"};
  for (const CgroupLevel& level : cgroup_levels(root, "cpuset")) {
    const auto list = [&]() {
      if (level.v2) return read_text(level.directory / "cpuset.cpus.effective");
      auto effective = read_text(level.directory / "cpuset.effective_cpus");
      return effective ? effective : read_text(level.directory / "cpuset.cpus");
    }();
    const auto cpus = list ? parse_cpu_list(*list) : std::set<int>();
    if (cpus.empty()) continue;
    std::set<int> both;
    std::set_intersection(cpus.begin(), cpus.end(), bound.cpus.begin(), bound.cpus.end(),
                          std::inserter(both, both.end()));
    if (bound.cpus.empty()) both = cpus;
    if (bound.cpus.empty() || both.size() < bound.cpus.size()) bound = {both, "cpuset " + level.shown};
  }
  return bound;
}

// Cores of one group: v2 "150000 100000" or "max 100000"; v1 two files, −1 for none.
std::optional<double> quota_of(const CgroupLevel& level) {
  std::string quota;
  std::string period;
  if (level.v2) {
    const auto text = read_text(level.directory / "cpu.max");
    if (!text) return std::nullopt;
    quota = text->substr(0, text->find(' '));
    period = text->size() > quota.size() ? text->substr(quota.size() + 1) : "100000";
  } else {
    quota = read_text(level.directory / "cpu.cfs_quota_us").value_or("");
    period = read_text(level.directory / "cpu.cfs_period_us").value_or("100000");
  }
  const auto quota_us = parse_number(quota);  // "max" and "-1" are no numbers: no limit
  const auto period_us = parse_number(period);
  if (!quota_us || !period_us || *quota_us == 0 || *period_us == 0) return std::nullopt;
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

void read_quota(const Root& root, CpuFacts& facts, std::string& by) {
  const auto levels = cgroup_levels(root, "cpu");
  facts.quota = Signal<double>::unavailable(levels.empty() ? "no cgroup with the cpu controller is visible"
                                                           : "no CPU quota is set");
  for (const CgroupLevel& level : levels) {
    const auto quota = quota_of(level);
    if (!quota || (facts.quota && *facts.quota <= *quota)) continue;
    facts.quota = *quota;
    by = fmt::format("CPU quota of {:.3g} in {}", *quota, level.shown);
  }
}

std::string model_of(std::string_view cpuinfo) {
  for (const char* key : {"model name", "Model", "Hardware"}) {
    if (const auto value = value_of(cpuinfo, key)) {
      return std::string(trim(value->substr(std::min(value->size(), value->find(':') + 1))));
    }
  }
  return "";
}

}  // namespace

CpuFacts cpu_facts(const Root& root) {
  CpuFacts facts;
  const std::string cpuinfo = read_text(root / "/proc/cpuinfo").value_or("");
  facts.model = model_of(cpuinfo);
  facts.online = online_cpus(root, cpuinfo);
  facts.usable = facts.online;
  facts.bound_by = "online CPUs";

  const Bound allowed = allowed_cpus(root);
  facts.affinity = allowed.cpus.empty() ? Signal<int>::unavailable("neither /proc nor a cpuset shows the mask")
                                        : Signal<int>(static_cast<int>(allowed.cpus.size()));
  if (facts.affinity && *facts.affinity < facts.usable) {
    facts.usable = *facts.affinity;
    facts.bound_by = allowed.by;
  }
  std::string quota_by;
  read_quota(root, facts, quota_by);
  // A quota of 1.5 keeps two threads busy three quarters of the time: rounding down would idle half a core.
  if (facts.quota && std::ceil(*facts.quota) < facts.usable) {
    facts.usable = std::max(1, static_cast<int>(std::ceil(*facts.quota)));
    facts.bound_by = quota_by;
  }
  return facts;
}

}  // namespace stoker::machine
