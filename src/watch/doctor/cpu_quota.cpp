#include <fmt/format.h>

#include "watch/doctor/checks.h"

namespace stoker::watch {

// Programs size themselves by os.cpu_count(), which sees neither quota nor, before Python 3.13, affinity.
void check_cpu_quota(const Facts& facts, DoctorFindings& findings) {
  if (facts.cpu.usable >= facts.cpu.online) return;
  findings.push_back(
      {"cpu_quota", Fitness::kOdd,
       fmt::format("{} of {} CPUs are usable ({}), and os.cpu_count() says {}", facts.cpu.usable, facts.cpu.online,
                   facts.cpu.bound_by, facts.cpu.online),
       fmt::format("export OMP_NUM_THREADS={0}, and give DataLoader at most {0} workers", facts.cpu.usable)});
}

}  // namespace stoker::watch
