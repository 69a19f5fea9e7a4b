// A recorded run in memory: what trace/ holds, read back. Metrics, verdict and report start from this and run.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/base/status.h"

namespace stoker::watch {

// All times are CLOCK_MONOTONIC nanoseconds of the recorded machine.
struct Span {
  std::uint32_t name = 0;    // index into RunData::names
  std::uint32_t thread = 0;  // index into RunData::threads
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;  // of a span still open when the trace ends: the trace's last time, with `open` set
  bool open = false;
  double value = 0;
};

struct Instant {
  std::uint32_t name = 0;
  std::uint32_t thread = 0;
  std::uint64_t time_ns = 0;
  double value = 0;
};

struct Sample {
  std::uint64_t time_ns = 0;
  double value = 0;
};

// One curve: a figure that the parent samples at 1 Hz, or a counter that the trainee emits. A missing reading is a gap
// in time, not a zero.
struct Counter {
  std::string name;
  std::string unit;  // "bytes", "share", "count", …
  std::vector<Sample> samples;
};

struct ThreadInfo {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::string name;
  bool main = false;  // the trainee's main thread, whose spans make the phase tree
};

struct RunData {
  Json run;  // run.json
  std::vector<std::string> names;
  std::vector<ThreadInfo> threads;
  std::vector<Span> spans;        // by thread, then begin
  std::vector<Instant> instants;  // by time
  std::vector<Counter> counters;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
  std::uint64_t lost_events = 0;  // overwritten in the ring before the parent read them
  std::uint64_t bad_bytes = 0;    // at the end of the trace, after its last whole frame
};

// Reads run.json and the trace of a run folder. A trace cut anywhere gives what lies before the cut.
// Errors: kNotFound, kIo; kCorrupt when run.json itself is no JSON.
Result<RunData> read_run(const std::filesystem::path& run);

}  // namespace stoker::watch
