// NVML's C interface as far as it is used here. Its functions and structures are stable across drivers; the ones that
// an old driver lacks are optional, and what they would say is then unavailable.
#include <dlfcn.h>

#include <array>

#include <fmt/format.h>

#include "machine/nvml_types.h"
#include "stoker/base/text.h"
#include "stoker/machine/gpu.h"

namespace stoker::machine {
namespace {

using nvml::Device;
using nvml::Memory;
using nvml::ProcessInfo;
using nvml::Utilization;
using Return = int;
constexpr Return kSuccess = 0;
constexpr Return kInsufficientSize = 7;
constexpr int kTemperatureOfGpu = 0;

class Library {
 public:
  explicit Library(void* handle) : handle_(handle) {}
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { ::dlclose(handle_); }

  // The first of `names` that the library has, else null.
  template <typename Function>
  void find(Function*& into, std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      into = reinterpret_cast<Function*>(::dlsym(handle_, name));
      if (into != nullptr) return;
    }
  }

 private:
  void* handle_;
};

}  // namespace

struct Nvml::Table {
  explicit Table(void* handle) : library(handle) {
    library.find(init, {"nvmlInit_v2", "nvmlInit"});
    library.find(shutdown, {"nvmlShutdown"});
    library.find(error_string, {"nvmlErrorString"});
    library.find(driver_version, {"nvmlSystemGetDriverVersion"});
    library.find(cuda_version, {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
    library.find(count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
    library.find(by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
    library.find(device_name, {"nvmlDeviceGetName"});
    library.find(memory, {"nvmlDeviceGetMemoryInfo"});
    library.find(capability, {"nvmlDeviceGetCudaComputeCapability"});
    library.find(utilization, {"nvmlDeviceGetUtilizationRates"});
    library.find(power, {"nvmlDeviceGetPowerUsage"});
    library.find(temperature, {"nvmlDeviceGetTemperature"});
    library.find(processes, {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() {
    if (started && shutdown != nullptr) shutdown();
  }

  std::string words(Return code) const {
    const char* text = error_string != nullptr ? error_string(code) : nullptr;
    return text != nullptr ? printable(text) : fmt::format("NVML error {}", code);
  }

  // Calls `function` unless the driver lacks it; the figure is `value()` when it succeeds.
  template <typename T, typename Value, typename... Parameters, typename... Arguments>
  Signal<T> ask(Return (*function)(Parameters...), Value value, Arguments... arguments) const {
    if (function == nullptr) return Signal<T>::unavailable("this driver's NVML does not have it");
    const Return code = function(arguments...);
    return code == kSuccess ? Signal<T>(value()) : Signal<T>::unavailable(words(code));
  }

  GpuFacts describe(Device device) const;
  Signal<std::uint64_t> memory_of_processes(Device device) const;

  Library library;
  bool started = false;

  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*driver_version)(char*, unsigned int) = nullptr;
  Return (*cuda_version)(int*) = nullptr;
  Return (*count)(unsigned int*) = nullptr;
  Return (*by_index)(unsigned int, Device*) = nullptr;
  Return (*device_name)(Device, char*, unsigned int) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  Return (*capability)(Device, int*, int*) = nullptr;
  Return (*utilization)(Device, Utilization*) = nullptr;
  Return (*power)(Device, unsigned int*) = nullptr;
  Return (*temperature)(Device, int, unsigned int*) = nullptr;
  Return (*processes)(Device, unsigned int*, ProcessInfo*) = nullptr;
};

Signal<std::uint64_t> Nvml::Table::memory_of_processes(Device device) const {
  if (processes == nullptr) return Signal<std::uint64_t>::unavailable("this driver's NVML does not have it");
  std::array<ProcessInfo, 256> found{};
  auto size = static_cast<unsigned int>(found.size());
  const Return code = processes(device, &size, found.data());
  if (code != kSuccess) {
    return Signal<std::uint64_t>::unavailable(code == kInsufficientSize ? "too many processes" : words(code));
  }
  std::uint64_t sum = 0;
  for (unsigned int i = 0; i < size; ++i) {
    if (found[i].used_memory == ~0ULL) return Signal<std::uint64_t>::unavailable("hidden by the driver");
    sum += found[i].used_memory;
  }
  return sum;
}

GpuFacts Nvml::Table::describe(Device device) const {
  GpuFacts gpu;
  std::array<char, 96> text{};
  gpu.name = "unknown GPU";
  if (device_name != nullptr && device_name(device, text.data(), text.size() - 1) == kSuccess) {
    gpu.name = printable(text.data());
  }
  Memory bytes{};
  gpu.memory_bytes = ask<std::uint64_t>(
      memory, [&] { return bytes.total; }, device, &bytes);
  gpu.memory_used_bytes =
      gpu.memory_bytes ? Signal<std::uint64_t>(bytes.used) : Signal<std::uint64_t>::unavailable(gpu.memory_bytes.why);
  gpu.memory_of_processes_bytes = memory_of_processes(device);
  int major = 0;
  int minor = 0;
  gpu.compute_capability = ask<int>(
      capability, [&] { return major * 10 + minor; }, device, &major, &minor);
  Utilization rates{};
  gpu.busy = ask<double>(
      utilization, [&] { return rates.gpu / 100.0; }, device, &rates);
  unsigned int milliwatts = 0;
  gpu.power_w = ask<double>(
      power, [&] { return milliwatts / 1000.0; }, device, &milliwatts);
  unsigned int degrees = 0;
  gpu.temperature_c = ask<int>(
      temperature, [&] { return static_cast<int>(degrees); }, device, kTemperatureOfGpu, &degrees);
  return gpu;
}

Nvml::Nvml(std::unique_ptr<Table> table) : table_(std::move(table)) {}
Nvml::Nvml(Nvml&&) noexcept = default;
Nvml& Nvml::operator=(Nvml&&) noexcept = default;
Nvml::~Nvml() = default;

Result<Nvml> Nvml::open(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Error{ErrorCode::kUnsupported, fmt::format("no NVIDIA driver: {} is not on this machine", library)};
  }
  auto table = std::make_unique<Table>(handle);
  if (table->init == nullptr || table->count == nullptr || table->by_index == nullptr) {
    return Error{ErrorCode::kUnsupported, library + " is not an NVML library"};
  }
  if (const Return code = table->init(); code != kSuccess) {
    return Error{ErrorCode::kUnsupported, fmt::format("the NVIDIA driver does not answer: {}", table->words(code))};
  }
  table->started = true;
  return Nvml(std::move(table));
}

Signal<std::string> Nvml::driver_version() const {
  std::array<char, 96> text{};
  return table_->ask<std::string>(
      table_->driver_version, [&] { return printable(text.data()); }, text.data(),
      static_cast<unsigned int>(text.size() - 1));
}

Signal<int> Nvml::driver_cuda_version() const {
  int version = 0;
  return table_->ask<int>(
      table_->cuda_version, [&] { return version; }, &version);
}

std::vector<GpuFacts> Nvml::gpus() const {
  std::vector<GpuFacts> found;
  unsigned int count = 0;
  if (table_->count(&count) != kSuccess) return found;
  for (unsigned int i = 0; i < count; ++i) {
    Device device = nullptr;
    if (table_->by_index(i, &device) == kSuccess) found.push_back(table_->describe(device));
  }
  return found;
}

}  // namespace stoker::machine
