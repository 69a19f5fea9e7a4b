// Where this process stands in the cgroup trees, v1 and v2. Private to the room.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/machine/machine.h"

namespace stoker::machine {

struct CgroupLevel {
  std::filesystem::path directory;  // to read from, under the root
  std::string shown;                // as this machine calls it: "/sys/fs/cgroup/memory/docker/4f…"
  bool v2 = false;
};

// Every group that may hold a limit of `controller` ("cpu", "cpuset", "memory") for this process: its own and all
// above it, innermost first, over every hierarchy that is mounted. A container that sees its own group as "/" gets
// what it sees; what lies above is hidden from it.
std::vector<CgroupLevel> cgroup_levels(const Root& root, std::string_view controller);

}  // namespace stoker::machine
