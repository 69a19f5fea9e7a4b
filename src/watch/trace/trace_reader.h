// Reads what TraceWriter wrote: whole, checked frames from the front of each segment, as spans, instants and curves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stoker/watch/run_data.h"
#include "watch/trace/proto.h"

namespace stoker::watch {

// The length of the valid frames at the front of `segment`, checks included.
std::size_t valid_prefix(std::string_view segment);

// Gathers segments, in order, into a RunData. The bytes may be anything: what is not understood is passed over, and
// memory stays within a constant factor of the bytes given.
class TraceReader {
 public:
  // Takes the valid frames of one segment; what follows them counts as bad_bytes.
  void add_segment(std::string_view segment);
  // Closes what is open, sorts, and hands over. `run` (run.json) tells which thread is the main one.
  RunData finish(Json run);

 private:
  struct Track {
    bool is_counter = false;
    std::uint32_t index = 0;  // into threads or counters
  };
  struct TrackEvent {
    std::uint64_t type = 0;
    std::uint64_t name_iid = 0;
    std::uint64_t track_uuid = 0;
    double value = 0;
  };

  void add_packet(std::string_view packet);
  void add_track(std::string_view descriptor);
  void add_names(std::string_view interned);
  void add_event(std::uint64_t time_ns, std::string_view bytes);
  void begin(const TrackEvent& event, std::uint32_t thread, std::uint64_t time_ns);
  void end(const TrackEvent& event, std::uint32_t thread, std::uint64_t time_ns);
  void sample(std::uint32_t counter, std::uint64_t time_ns, double value);
  std::uint32_t name_index(std::uint64_t iid);
  std::uint32_t intern(std::string_view text);
  std::uint32_t thread_index(const ThreadInfo& info);
  std::uint32_t counter_index(std::string_view text, std::string_view unit);
  void saw(std::uint64_t time_ns);

  static TrackEvent parse_event(std::string_view bytes);

  RunData data_;
  std::unordered_map<std::string, std::uint32_t> name_numbers_;
  std::unordered_map<std::string, std::uint32_t> counter_numbers_;
  std::unordered_map<std::uint64_t, std::uint32_t> thread_numbers_;  // pid << 32 | tid
  std::unordered_map<std::uint64_t, std::uint32_t> iids_;            // of the segment at hand
  std::unordered_map<std::uint64_t, Track> tracks_;                  // of the segment at hand
  std::vector<std::vector<std::size_t>> open_;                       // by thread: spans not ended, outermost first
};

}  // namespace stoker::watch
