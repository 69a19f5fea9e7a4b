// The facts in words for a terminal, and as numbers for JSON.
#include <fmt/format.h>

#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "watch/doctor/facts.h"

namespace stoker::watch {
namespace {

std::string size_or_why(const Signal<std::uint64_t>& bytes) {
  return bytes ? format_size(*bytes) : "not known (" + bytes.why + ")";
}

std::string cpu_text(const machine::CpuFacts& cpu) {
  std::string text = fmt::format("{} usable of {}", cpu.usable, cpu.online);
  if (cpu.usable < cpu.online) text += " (" + cpu.bound_by + ")";
  return cpu.model.empty() ? text : text + ", " + printable(cpu.model);
}

std::string memory_text(const machine::MemoryFacts& memory) {
  if (!memory.limit) return "not known (" + memory.limit.why + ")";
  return fmt::format("{} left of {} ({})", size_or_why(memory.left), format_size(*memory.limit), memory.bound_by);
}

std::string disk_text(const Disk& disk) {
  std::string text = disk.free ? format_size(*disk.free) + " free" : "free space not known (" + disk.free.why + ")";
  text += " for " + disk.used_for;
  if (!disk.mount) return text;
  const machine::Mount& mount = *disk.mount;
  return fmt::format("{} at {} ({}, {}{})", text, printable(mount.point.native()), machine::name(mount.kind),
                     printable(mount.filesystem), mount.read_only ? ", read-only" : "");
}

std::string gpu_text(const machine::GpuFacts& gpu) {
  std::string text = gpu.name;
  if (gpu.compute_capability) text += fmt::format(", sm_{}", *gpu.compute_capability);
  if (!gpu.memory_bytes) return text + ", memory not known (" + gpu.memory_bytes.why + ")";
  text += ", " + format_size(*gpu.memory_bytes);
  if (gpu.memory_used_bytes) text += fmt::format(" ({} in use)", format_size(*gpu.memory_used_bytes));
  return text;
}

std::string python_text(const machine::PythonFacts& python) {
  if (!python.executable) return "none (" + python.executable.why + ")";
  return fmt::format("{}, {} ({})", python.version ? *python.version : "version not known",
                     printable(python.executable.value->native()), python.kind);
}

std::string or_why(const Signal<std::string>& version) { return version ? printable(*version) : version.why; }

std::string torch_text(const machine::PythonFacts& python) {
  if (!python.torch) return python.torch.why;
  const std::string build = python.torch_cuda ? "CUDA " + *python.torch_cuda : python.torch_cuda.why;
  return printable(*python.torch) + ", " + build;
}

Json gpu_json(const machine::GpuFacts& gpu) {
  return Json::object({{"name", gpu.name},
                       {"compute_capability", gpu.compute_capability},
                       {"memory_bytes", gpu.memory_bytes},
                       {"memory_used_bytes", gpu.memory_used_bytes},
                       {"memory_of_processes_bytes", gpu.memory_of_processes_bytes},
                       {"busy", gpu.busy},
                       {"power_w", gpu.power_w},
                       {"temperature_c", gpu.temperature_c}});
}

Json gpus_json(const Facts& facts) {
  if (!facts.gpus) return Json::object({{"value", nullptr}, {"why", facts.gpus.why}});
  Json gpus = Json::array();
  for (const auto& gpu : *facts.gpus) gpus.push(gpu_json(gpu));
  return Json::object({{"value", std::move(gpus)}});
}

Json disks_json(const Facts& facts) {
  Json disks = Json::array();
  for (const Disk& disk : facts.disks) {
    Json entry = Json::object({{"used_for", disk.used_for}, {"path", disk.path.native()}, {"free_bytes", disk.free}});
    if (disk.mount) {
      entry.set("mount", disk.mount.value->point.native());
      entry.set("filesystem", disk.mount.value->filesystem);
      entry.set("kind", machine::name(disk.mount.value->kind));
      entry.set("read_only", disk.mount.value->read_only);
    }
    disks.push(std::move(entry));
  }
  return disks;
}

Json python_json(const machine::PythonFacts& python) {
  const Signal<std::string> executable = python.executable ? Signal<std::string>(python.executable.value->native())
                                                           : Signal<std::string>::unavailable(python.executable.why);
  return Json::object({{"executable", executable},
                       {"version", python.version},
                       {"kind", python.kind},
                       {"torch", python.torch},
                       {"torch_cuda", python.torch_cuda},
                       {"torchvision", python.torchvision},
                       {"numpy", python.numpy},
                       {"pillow", python.pillow}});
}

}  // namespace

std::vector<DoctorLine> lines_of(const Facts& facts) {
  std::vector<DoctorLine> lines;
  lines.push_back({"machine", machine::describe(facts.platform)});
  lines.push_back({"CPUs", cpu_text(facts.cpu)});
  lines.push_back({"memory", memory_text(facts.memory)});
  lines.push_back({"/dev/shm", size_or_why(facts.shm.size)});
  for (const Disk& disk : facts.disks) lines.push_back({"disk", disk_text(disk)});
  if (!facts.has_gpu()) {
    lines.push_back({"GPU", "none (" + (facts.gpus ? "the driver shows no GPU" : facts.gpus.why) + ")"});
  } else {
    for (const auto& gpu : *facts.gpus) lines.push_back({"GPU", gpu_text(gpu)});
  }
  if (facts.driver) {
    lines.push_back(
        {"driver", *facts.driver + (facts.driver_cuda ? ", CUDA up to " + cuda_name(*facts.driver_cuda) : "")});
  }
  lines.push_back({"Python", python_text(facts.python)});
  lines.push_back({"torch", torch_text(facts.python)});
  lines.push_back({"packages", fmt::format("torchvision {}, NumPy {}, Pillow {}", or_why(facts.python.torchvision),
                                           or_why(facts.python.numpy), or_why(facts.python.pillow))});
  lines.push_back({"Stoker", STOKER_VERSION});
  return lines;
}

Json json_of(const Facts& facts) {
  return Json::object({{"schema", "stoker.doctor.v1"},
                       {"stoker_version", STOKER_VERSION},
                       {"platform", Json::object({{"host", machine::name(facts.platform.host)},
                                                  {"container", facts.platform.container},
                                                  {"gvisor", facts.platform.gvisor},
                                                  {"why", facts.platform.why}})},
                       {"cpu", Json::object({{"online", facts.cpu.online},
                                             {"affinity", facts.cpu.affinity},
                                             {"quota", facts.cpu.quota},
                                             {"usable", facts.cpu.usable},
                                             {"bound_by", facts.cpu.bound_by},
                                             {"model", facts.cpu.model}})},
                       {"memory", Json::object({{"limit_bytes", facts.memory.limit},
                                                {"used_bytes", facts.memory.used},
                                                {"left_bytes", facts.memory.left},
                                                {"ram_bytes", facts.memory.ram},
                                                {"bound_by", facts.memory.bound_by}})},
                       {"shm", Json::object({{"size_bytes", facts.shm.size}, {"free_bytes", facts.shm.free}})},
                       {"limits", Json::object({{"open_files", facts.limits.open_files},
                                                {"processes", facts.limits.processes},
                                                {"locked_memory_bytes", facts.limits.locked_memory_bytes}})},
                       {"disks", disks_json(facts)},
                       {"gpus", gpus_json(facts)},
                       {"driver", facts.driver},
                       {"driver_cuda", facts.driver_cuda},
                       {"python", python_json(facts.python)}});
}

}  // namespace stoker::watch
