// Carries events from the ring into the trace.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/ring.h"
#include "watch/trace/trace_writer.h"

namespace stoker::watch {

// Threads: one owner.
class Drain {
 public:
  Drain(std::shared_ptr<Ring> ring, TraceWriter& trace) : reader_(std::move(ring)), trace_(trace) {}

  // Events of a thread at or before its time here are in the trace already and are passed over; by pid << 32 | tid.
  void skip_until(std::unordered_map<std::uint64_t, std::uint64_t> times) { known_until_ = std::move(times); }

  // False: from now on the spans that begin on other threads than a process's main one are left out, because the trace
  // grows too fast. Spans that are open stay whole.
  void keep_other_threads(bool keep) { keep_other_threads_ = keep; }
  // Events left out so far for that reason.
  std::uint64_t left_out() const { return left_out_; }

  // Takes what has come since the last call. Returns how many events went into the trace.
  std::uint64_t take(std::uint64_t now_ns);

 private:
  struct Slot {
    std::uint64_t owner = 0;  // pid << 32 | tid
    std::uint32_t thread = 0;
    std::uint64_t known_until = 0;
    bool main = false;
    std::uint32_t left_out_depth = 0;  // spans open now whose begin was left out
  };

  bool put(const Event& event);
  bool is_left_out(Slot& slot, EventKind kind);
  Slot& slot_of(std::uint32_t index);
  std::uint32_t name_of(std::uint32_t ring_name);
  std::uint32_t counter_of(std::uint32_t ring_name);

  RingReader reader_;
  TraceWriter& trace_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> names_;  // by ring name: trace name + 1, or 0
  std::unordered_map<std::uint64_t, std::uint64_t> known_until_;
  bool keep_other_threads_ = true;
  std::uint64_t left_out_ = 0;
};

}  // namespace stoker::watch
