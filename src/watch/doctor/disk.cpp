#include <fmt/format.h>

#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "watch/doctor/checks.h"

namespace stoker::watch {

void check_disk(const Facts& facts, DoctorFindings& findings) {
  constexpr std::uint64_t kLittle = 2'000'000'000;
  constexpr std::uint64_t kNothing = 100'000'000;
  for (const Disk& disk : facts.disks) {
    if (!disk.free || *disk.free >= kLittle) continue;
    if (disk.mount && disk.mount.value->read_only) continue;  // check_mounts speaks of it
    findings.push_back({"disk", *disk.free < kNothing ? Fitness::kUnfit : Fitness::kOdd,
                        fmt::format("only {} are free for {} ({})", format_size(*disk.free), disk.used_for,
                                    printable(disk.path.native())),
                        "free space there, or set STOKER_RUNS and STOKER_CACHE to another disk"});
  }
}

}  // namespace stoker::watch
