#include <fmt/format.h>

#include "stoker/base/units.h"
#include "watch/doctor/checks.h"

namespace stoker::watch {

// torch alone takes half a gigabyte, and each DataLoader worker as much again.
void check_memory(const Facts& facts, DoctorFindings& findings) {
  constexpr std::uint64_t kLittle = 2'000'000'000;
  if (!facts.memory.left || *facts.memory.left >= kLittle) return;
  findings.push_back(
      {"memory", Fitness::kOdd,
       fmt::format("only {} of memory are left ({})", format_size(*facts.memory.left), facts.memory.bound_by),
       "end other programs, or use fewer DataLoader workers: each costs about 0.5 GB"});
}

}  // namespace stoker::watch
