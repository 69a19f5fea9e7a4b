// The work on the GPUs: which of it counts, what class it is, and when each piece was launched.
#pragma once

#include <optional>
#include <vector>

#include "stoker/watch/kineto.h"
#include "watch/kineto/intervals.h"
#include "watch/kineto/reader.h"

namespace stoker::watch::kineto {

struct Work {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t launch_ns = 0;  // start of the launching call, where has_launch
  std::int64_t call_ns = 0;    // length of that call
  std::uint32_t name = 0;
  std::uint32_t lane = 0;
  WorkClass work = WorkClass::kCompute;
  bool has_launch = false;
  std::uint64_t place = 0;  // in the file

  std::int64_t duration_ns() const { return end_ns - start_ns; }
};

// By the name, as HTA does it, and for copies by the event's category too.
WorkClass class_of(Kind kind, std::string_view name);

struct GpuWork {
  std::vector<Work> pieces;  // by start, then by place in the file
  KinetoWindow window;
  std::int64_t last_step_start_ns = INT64_MAX;  // pieces launched from here on are left out
};

GpuWork select_work(const TraceText& trace);
// Null where there is no work.
Signal<GpuUse> measure_gpu(const TraceText& trace, const GpuWork& work);

// What torch calls the wait for a DataLoader's next batch, an operator in old traces and an annotation in new ones.
bool is_loader_wait(std::string_view name);

TensorCoreUse tensor_core_use(const std::vector<KernelUse>& kernels);
bool uses_tensor_cores(std::string_view kernel);
bool is_matrix_kernel(std::string_view kernel);

std::vector<KinetoStep> measure_steps(const TraceText& trace, const GpuWork& work, std::int64_t origin_ns);
std::vector<OpUse> measure_ops(const TraceText& trace);
std::vector<MemoryUse> measure_memory(const TraceText& trace, std::int64_t origin_ns);

}  // namespace stoker::watch::kineto
