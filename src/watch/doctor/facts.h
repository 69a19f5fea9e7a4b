// All that the checks look at, read once. Private to the room.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "stoker/machine/machine.h"
#include "stoker/machine/platform.h"
#include "stoker/machine/python.h"
#include "stoker/watch/doctor.h"

namespace stoker::watch {

struct Disk {
  std::string used_for;  // "work", "runs", "cache"
  std::filesystem::path path;
  Signal<machine::Mount> mount;
  Signal<std::uint64_t> free;
};

struct Facts {
  machine::PlatformFacts platform;
  machine::CpuFacts cpu;
  machine::MemoryFacts memory;
  machine::ShmFacts shm;
  machine::LimitFacts limits;
  std::vector<Disk> disks;
  std::vector<machine::Mount> mounts;
  Signal<std::vector<machine::GpuFacts>> gpus;
  Signal<std::string> driver;
  Signal<int> driver_cuda;
  machine::PythonFacts python;
  bool expect_gpu = false;

  // True where the driver and image are somebody else's to change.
  bool is_hosted() const { return platform.host == machine::Host::kColab || platform.host == machine::Host::kKaggle; }
  bool has_gpu() const { return gpus && !gpus.value->empty(); }
};

Facts gather(const DoctorOptions& options);

std::vector<DoctorLine> lines_of(const Facts& facts);
Json json_of(const Facts& facts);

// "12.4" for 12040.
std::string cuda_name(int version);
// 12040 for "12.4"; 0 for no such thing.
int cuda_number(const std::string& name);

}  // namespace stoker::watch
