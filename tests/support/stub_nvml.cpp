// A stand-in for libnvidia-ml.so.1 whose answers are set by environment variables, read anew at each call:
//   STUB_NVML_GPUS    one GPU per '|': name;capability;total bytes;used bytes;bytes of visible processes;busy %
//                     ("-" for a figure that the driver refuses), as "Tesla T4;75;16106127360;1000000000;500000000;30"
//   STUB_NVML_DRIVER  "550.54.15"    STUB_NVML_CUDA  "12040"    STUB_NVML_INIT  nvmlInit's return code
// It has no nvmlDeviceGetPowerUsage and no nvmlDeviceGetTemperature, as an odd old driver might.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "machine/nvml_types.h"

#define STUB extern "C" __attribute__((visibility("default")))

namespace {

using namespace stoker::machine::nvml;

enum Return { kOk = 0, kNotSupported = 3, kDriverNotLoaded = 9 };

const char* setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

std::string_view piece(std::string_view text, std::uintptr_t n, char separator) {
  for (; n > 0 && !text.empty(); --n) {
    const auto end = text.find(separator);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return text.substr(0, text.find(separator));
}

// Handles are 1, 2, …
std::string_view field(Device device, std::uintptr_t n) {
  const auto index = reinterpret_cast<std::uintptr_t>(device) - 1;
  return piece(piece(setting("STUB_NVML_GPUS", ""), index, '|'), n, ';');
}

std::optional<unsigned long long> number(Device device, std::uintptr_t n) {
  const std::string text(field(device, n));
  if (text.empty() || text == "-") return std::nullopt;
  return std::strtoull(text.c_str(), nullptr, 10);
}

}  // namespace

STUB int nvmlInit_v2() { return std::atoi(setting("STUB_NVML_INIT", "0")); }
STUB int nvmlShutdown() { return kOk; }
STUB const char* nvmlErrorString(int code) {
  return code == kDriverNotLoaded ? "Driver Not Loaded" : code == kNotSupported ? "Not Supported" : "Unknown Error";
}
STUB int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "%s", setting("STUB_NVML_DRIVER", "550.54.15"));
  return kOk;
}
STUB int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = std::atoi(setting("STUB_NVML_CUDA", "12040"));
  return kOk;
}
STUB int nvmlDeviceGetCount_v2(unsigned* count) {
  const std::string_view gpus = setting("STUB_NVML_GPUS", "");
  *count = gpus.empty() ? 0 : 1;
  for (const char c : gpus) *count += c == '|' ? 1 : 0;
  return kOk;
}
STUB int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  *device = reinterpret_cast<Device>(std::uintptr_t{index} + 1);
  return kOk;
}
STUB int nvmlDeviceGetName(Device device, char* text, unsigned size) {
  std::snprintf(text, size, "%s", std::string(field(device, 0)).c_str());
  return kOk;
}
STUB int nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  const auto both = number(device, 1);
  if (!both) return kNotSupported;
  *major = static_cast<int>(*both / 10);
  *minor = static_cast<int>(*both % 10);
  return kOk;
}
STUB int nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  const auto total = number(device, 2);
  if (!total) return kNotSupported;
  const auto used = number(device, 3).value_or(0);
  *memory = {*total, *total - used, used};
  return kOk;
}
STUB int nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, ProcessInfo* infos) {
  const auto used = number(device, 4);
  if (!used) return kNotSupported;
  *count = *used != 0 ? 1 : 0;
  *infos = {1, *used, 0, 0};
  return kOk;
}
STUB int nvmlDeviceGetUtilizationRates(Device device, Utilization* rates) {
  const auto busy = number(device, 5);
  if (!busy) return kNotSupported;
  *rates = {static_cast<unsigned>(*busy), 0};
  return kOk;
}
