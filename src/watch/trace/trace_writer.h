// Writes a run's trace/ folder: Perfetto packets in checked frames, appended to segments that are never rewritten.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/base/events.h"
#include "stoker/base/files.h"
#include "stoker/base/status.h"
#include "stoker/watch/run_data.h"

namespace stoker::watch {

struct TraceOptions {
  std::uint64_t segment_bytes = 16U << 20;  // a new segment begins after the frame that reaches this
};

// Events are gathered in memory until flush() makes a frame of them.
//
// Threads:  one owner.
// Crash:    after a flush() that returned ok the frame survives the death of this process; after sync() that of the
//           machine. A frame that was being written is cut, and the reader drops it.
// Errors:   a failed flush() drops the frame's events and leaves the trace readable up to the frame before.
class TraceWriter {
 public:
  // Creates `folder` if missing and begins the segment after the newest one there, so that a writer never appends to a
  // frame that another left half done.
  static Result<std::unique_ptr<TraceWriter>> open(FileSystem& fs, const std::filesystem::path& folder,
                                                   const Clock& clock = Clock::real(), TraceOptions options = {});

  // Numbers to be used below, the same for as long as this writer lives.
  std::uint32_t name(std::string_view text);
  std::uint32_t thread(const ThreadInfo& info);
  std::uint32_t counter(std::string_view text, std::string_view unit);

  // A span's begin or end, or an instant. `name` and `thread` come from the calls above.
  void event(std::uint32_t thread, std::uint32_t name, EventKind kind, std::uint64_t time_ns, double value);
  void sample(std::uint32_t counter, std::uint64_t time_ns, double value);
  // Adds to the number of events that never reached us.
  void lost(std::uint64_t events, std::uint64_t time_ns);

  // Writes what was gathered as one frame.
  Status flush();
  // fdatasync of the current segment.
  Status sync();

  std::uint64_t bytes_written() const { return bytes_written_; }

 private:
  TraceWriter(FileSystem& fs, std::filesystem::path folder, const Clock& clock, TraceOptions options)
      : fs_(fs), folder_(std::move(folder)), clock_(clock), options_(options) {}

  struct CounterTrack {
    std::string name;
    std::string unit;
  };

  Status begin_segment();
  void put_preamble();
  void put_process(std::uint32_t pid);
  void put_thread(std::uint32_t index);
  void put_counter(std::uint32_t index);
  void put_name(std::uint32_t index);
  void put_packet(std::string_view body, std::uint64_t flags);
  void put_event(std::uint64_t time_ns, std::string_view body);

  FileSystem& fs_;
  const std::filesystem::path folder_;
  const Clock& clock_;
  const TraceOptions options_;

  std::unique_ptr<WritableFile> file_;
  std::uint32_t segment_ = 0;
  std::uint64_t segment_bytes_ = 0;
  std::uint64_t bytes_written_ = 0;
  std::string frame_;  // packets since the last check

  std::unordered_map<std::string, std::uint32_t> name_numbers_;
  std::unordered_map<std::string, std::uint32_t> counter_numbers_;
  std::vector<std::string> names_;
  std::vector<ThreadInfo> threads_;
  std::vector<CounterTrack> counters_;
  std::uint64_t lost_ = 0;
};

}  // namespace stoker::watch
