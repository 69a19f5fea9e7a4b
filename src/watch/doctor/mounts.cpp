#include <fmt/format.h>

#include "stoker/base/text.h"
#include "watch/doctor/checks.h"

namespace stoker::watch {
namespace {

void check_place(const Disk& disk, DoctorFindings& findings) {
  if (!disk.mount) return;
  const machine::Mount& mount = *disk.mount;
  const std::string place = fmt::format("the place for {} ({}) is on", disk.used_for, printable(disk.path.native()));
  if (mount.read_only) {
    findings.push_back({"mounts", Fitness::kOdd,
                        fmt::format("{} a read-only mount, {}", place, printable(mount.point.native())),
                        "work in a place that can be written; caches go to $STOKER_CACHE"});
  } else if (machine::is_remote(mount.kind)) {
    findings.push_back(
        {"mounts", Fitness::kOdd,
         fmt::format("{} a {} mount ({}, {}): each file costs a round trip", place, machine::name(mount.kind),
                     printable(mount.point.native()), printable(mount.filesystem)),
         "bring the data to local disk with `stoker stage`, and write runs there"});
  }
}

}  // namespace

// Read-only inputs and mounted drives are where sessions lose their time and their files.
void check_mounts(const Facts& facts, DoctorFindings& findings) {
  for (const Disk& disk : facts.disks) check_place(disk, findings);
  for (const machine::Mount& mount : facts.mounts) {
    if (mount.point == "/kaggle/input" && mount.read_only) {
      findings.push_back({"mounts", Fitness::kOdd,
                          "/kaggle/input is read-only: no cache or index can be written beside the data",
                          "write to /kaggle/working (20 GB) or /tmp; Stoker's own caches go to $STOKER_CACHE"});
    }
    if (mount.point == "/content/drive") {
      findings.push_back({"mounts", Fitness::kOdd,
                          "Google Drive is mounted at /content/drive: reading many small files from it takes hours",
                          "keep the data there as one archive, and `stoker stage` it to /content/data"});
    }
  }
}

}  // namespace stoker::watch
