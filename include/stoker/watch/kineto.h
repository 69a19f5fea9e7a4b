// A torch.profiler (Kineto) trace, read in windows and judged: where the GPU's time went, what it waited for, and why.
//
// Times are nanoseconds inside and microseconds (a decimal number) in JSON. The definitions of every figure, and where
// they differ from HolisticTraceAnalysis's, are in docs/design/watch-kineto.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stoker/base/files.h"
#include "stoker/base/json.h"
#include "stoker/base/status.h"
#include "stoker/watch/verdict.h"

namespace stoker::watch {

struct KinetoOptions {
  std::function<bool()> cancelled = [] { return false; };  // asked once a window (about 128 KiB of text)
  std::uint64_t max_events = 20'000'000;                   // kept ones, 40 bytes each; the rest are left out and said
  std::uint64_t max_text_bytes = std::uint64_t{64} << 30;  // after inflation
  std::size_t max_value_bytes = std::size_t{64} << 20;     // one event, or one other member of the file
  std::size_t max_name_bytes = std::size_t{256} << 20;     // all distinct names together
};

enum class WorkClass { kCompute, kCommunication, kMemory };
const char* name(WorkClass work);  // "compute", "communication", "memory"

// Why a GPU did nothing between two pieces of work.
struct IdleSplit {
  std::int64_t host_wait_ns = 0;    // the next work was launched after the last one had ended
  std::int64_t kernel_wait_ns = 0;  // it lay ready, and the gap is under 30 µs: the cost of starting work
  std::int64_t other_ns = 0;        // it lay ready, and did not start: an event, another stream, a copy
};

struct StreamUse {
  std::int64_t device = 0;
  std::int64_t stream = 0;
  std::uint64_t count = 0;
  std::int64_t busy_ns = 0;
  IdleSplit idle;
};

struct KernelUse {
  std::string name;
  WorkClass work = WorkClass::kCompute;
  bool tensor_cores = false;
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  std::map<std::int64_t, std::int64_t> total_ns_by_stream;
};

struct Launches {
  std::uint64_t matched = 0;    // work on the GPU whose launch is in the trace
  std::uint64_t unmatched = 0;  // and whose is not
  std::uint64_t shorter_than_launch = 0;
  std::int64_t call_ns = 0;  // in the launching calls
  // From the start of the launching call to the start of the work.
  std::int64_t delay_median_ns = 0;
  std::int64_t delay_p90_ns = 0;
  std::int64_t delay_max_ns = 0;
};

struct TensorCoreUse {
  std::int64_t tensor_ns = 0;  // in kernels that use Tensor Cores, by their names
  std::int64_t matrix_ns = 0;  // in matrix products and convolutions, with or without
};

// All work on the GPUs of one rank within the window (see KinetoWindow).
struct GpuUse {
  std::uint64_t count = 0;
  std::int64_t span_ns = 0;         // from the first start to the last end: HTA's "kernel time"
  std::int64_t idle_ns = 0;         // of that, no stream busy
  std::int64_t compute_ns = 0;      // some compute kernel running
  std::int64_t non_compute_ns = 0;  // busy without one
  std::int64_t communication_ns = 0;
  std::int64_t memory_ns = 0;
  std::int64_t exposed_communication_ns = 0;           // communication without compute
  std::map<std::string, std::int64_t> combination_ns;  // "compute+memory": exactly these classes running; exclusive
  Signal<double> communication_overlap_pct = Signal<double>::unavailable("no communication kernel in the trace");
  IdleSplit idle;                     // of idle_ns, over all streams together
  std::int64_t data_wait_ns = 0;      // of idle.host_wait_ns, while a DataLoader was asked for its next batch
  std::int64_t launch_bound_ns = 0;   // of the rest, while some operator of the framework ran on the host
  std::int64_t pageable_copy_ns = 0;  // copies from or to memory that is not pinned
  std::vector<StreamUse> streams;
  std::vector<KernelUse> kernels;  // greatest total first
  Launches launches;
  Signal<TensorCoreUse> tensor_cores = Signal<TensorCoreUse>::unavailable("no device properties in the trace");
};

struct KinetoStep {
  std::string name;
  std::int64_t start_ns = 0;  // from the trace's first event
  std::int64_t duration_ns = 0;
  std::uint64_t launched = 0;    // pieces of GPU work launched in it
  std::int64_t gpu_busy_ns = 0;  // within the step's own time, some stream busy
  bool in_window = true;
};

struct OpUse {
  std::string name;
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;  // nested calls of the same name count again
  std::int64_t self_ns = 0;   // time for which it was the innermost operator of its thread
};

struct MemoryUse {
  std::int64_t device = -1;  // -1: the host
  std::uint64_t events = 0;
  std::int64_t peak_allocated_bytes = 0;
  std::int64_t peak_reserved_bytes = 0;
  struct Point {
    std::int64_t at_ns = 0;
    std::int64_t allocated_bytes = 0;
    std::int64_t reserved_bytes = 0;
  };
  std::vector<Point> timeline;  // at most 200, the highest of each part of the trace
};

// HTA's rule: of two or more profiler steps the last is left out, as the profiler stops in it.
struct KinetoWindow {
  std::uint64_t steps_seen = 0;
  bool last_left_out = false;
  std::uint64_t work_left_out = 0;
};

struct KinetoRank {
  std::filesystem::path file;
  std::int64_t rank = 0;  // as the trace says, else the file's place in the list
  Signal<std::string> device = Signal<std::string>::unavailable("the trace lists no devices");
  Signal<std::int64_t> world_size = Signal<std::int64_t>::unavailable("the trace does not say");
  std::uint64_t text_bytes = 0;
  std::uint64_t events_seen = 0;
  std::uint64_t events_kept = 0;
  std::uint64_t table_bytes = 0;  // of the events that were kept, and their names
  std::int64_t duration_ns = 0;   // from the first kept event to the last end
  KinetoWindow window;
  Signal<GpuUse> gpu = Signal<GpuUse>::unavailable("no work on a GPU in the trace");
  std::vector<KinetoStep> steps;
  std::vector<OpUse> ops;  // greatest self time first
  std::vector<MemoryUse> memory;
  std::vector<std::string> problems;  // what could not be read, one sentence each
};

// Reads and judges one file, gzip or plain, by its first bytes. A damaged one is read up to the damage and beyond it
// where an event can be found again; `problems` says what is missing.
// Blocks: for the whole file; inflation runs on a second thread that ends with the call.
// Errors: kNotFound, kIo, kBadInput (a directory, empty, not a trace), kCancelled.
// Cost: 40 bytes an event that is kept, its distinct names, and one window of text.
Result<KinetoRank> read_kineto(FileSystem& fs, const std::filesystem::path& file, std::int64_t place,
                               const KinetoOptions& options = {});

// What binds the ranks together, first what costs most. At least one finding.
std::vector<Finding> judge_kineto(const std::vector<KinetoRank>& ranks);

// {"schema": "stoker.trace.v1", "ranks": […], "findings": […]}.
Json to_json(const std::vector<KinetoRank>& ranks, const std::vector<Finding>& findings);

// One HTML file, without a script and without the network; the first 100 rows of each table.
std::string kineto_page(const std::vector<KinetoRank>& ranks, const std::vector<Finding>& findings);

// A screen for one rank: lines without colour.
std::vector<std::string> kineto_summary(const KinetoRank& rank);

}  // namespace stoker::watch
