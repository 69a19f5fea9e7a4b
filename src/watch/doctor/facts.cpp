#include "watch/doctor/facts.h"

#include <algorithm>
#include <charconv>

#include "stoker/base/files.h"
#include "stoker/base/run_directory.h"

namespace stoker::watch {
namespace {

Disk disk_of(const std::string& used_for, const std::filesystem::path& path, const machine::Root& root) {
  Disk disk{used_for, path, {}, {}};
  auto mount = machine::mount_of(path, root);
  disk.mount = mount ? Signal<machine::Mount>(*mount) : Signal<machine::Mount>::unavailable(mount.error().message);
  if (!root.is_this_machine()) {
    disk.free = Signal<std::uint64_t>::unavailable("a recorded machine");
    return disk;
  }
  auto free = FileSystem::real().free_bytes(path);
  disk.free = free ? Signal<std::uint64_t>(*free) : Signal<std::uint64_t>::unavailable(free.error().message);
  return disk;
}

// One entry a mount: what lies on the same disk as an earlier one adds nothing.
void add_disk(std::vector<Disk>& disks, Disk disk) {
  for (Disk& known : disks) {
    if (known.mount && disk.mount && known.mount.value->point == disk.mount.value->point) {
      known.used_for += ", " + disk.used_for;
      return;
    }
  }
  disks.push_back(std::move(disk));
}

void ask_driver(const DoctorOptions& options, Facts& facts) {
  const auto nvml = machine::Nvml::open(options.nvml_library);
  if (!nvml) {
    const std::string why = nvml.error().message;
    facts.gpus = Signal<std::vector<machine::GpuFacts>>::unavailable(why);
    facts.driver = Signal<std::string>::unavailable(why);
    facts.driver_cuda = Signal<int>::unavailable(why);
    return;
  }
  facts.gpus = nvml->gpus();
  facts.driver = nvml->driver_version();
  facts.driver_cuda = nvml->driver_cuda_version();
}

}  // namespace

Facts gather(const DoctorOptions& options) {
  Facts facts;
  facts.platform = machine::platform_facts(options.root, options.environment);
  facts.cpu = machine::cpu_facts(options.root);
  facts.memory = machine::memory_facts(options.root);
  facts.shm = machine::shm_facts(options.root);
  facts.limits = machine::limit_facts(options.root);
  if (auto mounts = machine::mounts(options.root)) facts.mounts = std::move(*mounts);
  add_disk(facts.disks, disk_of("work", options.directory, options.root));
  if (options.root.is_this_machine()) {
    add_disk(facts.disks, disk_of("runs", runs_root(), options.root));
    add_disk(facts.disks, disk_of("cache", cache_directory(), options.root));
  }
  ask_driver(options, facts);
  facts.python = machine::python_facts(options.root, options.environment, options.python);
  facts.expect_gpu = options.expect_gpu;
  return facts;
}

std::string cuda_name(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

int cuda_number(const std::string& name) {
  int major = 0;
  int minor = 0;
  const char* end = name.data() + name.size();
  const auto dot = std::from_chars(name.data(), end, major);
  if (dot.ec != std::errc() || dot.ptr == end || *dot.ptr != '.') return 0;
  std::from_chars(dot.ptr + 1, end, minor);
  return major * 1000 + minor * 10;
}

}  // namespace stoker::watch
