// The one way in which rooms report what they do: 32-byte events into a ring that a recorder reads.
//
// A process that finds STOKER_RING in its environment maps that file (src/base/ring.h has its bytes) and writes there;
// without it an event costs one relaxed load. One ring per thread, each with a single writer that never waits: when
// the reader is late, the oldest events are overwritten and the reader counts them as lost.
//
// Threads: everything here may be called from any thread. A forked child detaches: its events go nowhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "stoker/base/status.h"

namespace stoker {

enum class EventKind : std::uint32_t {
  kBegin = 1,    // a span opens on this thread
  kEnd = 2,      // the innermost open span of this name closes; value: a figure of the span, or 0
  kInstant = 3,  // a point in time
  kCounter = 4,  // value: the new reading
};

struct Event {
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::uint32_t name = 0;     // from EventName
  std::uint32_t thread = 0;   // the ring's index, set by the writer
  EventKind kind = EventKind::kInstant;
  std::uint32_t reserved = 0;
  double value = 0;
};
static_assert(sizeof(Event) == 32);

namespace events_detail {
extern std::atomic<bool> attached;
void write(std::uint32_t name, EventKind kind, double value);
}  // namespace events_detail

// True when a recorder listens.
inline bool events_on() { return events_detail::attached.load(std::memory_order_relaxed); }

// Maps the ring named by STOKER_RING, if any. Called once by whoever owns the process: the CLI or the extension.
// Errors: kNotFound, kCorrupt (not a ring of this version), kIo. Without the variable: ok, and nothing happens.
Status events_attach_from_environment();
// Maps the ring file at `path`.
Status events_attach(const std::string& path);
// Stops writing; the file stays as it is.
void events_detach();

// The number of `name` in the attached ring's table (0, "unnamed", when the table is full or no ring is attached).
std::uint32_t event_name(std::string_view name);

// A name known at compile time, looked up once per attachment: `static EventName kDecode("feed.decode");`
class EventName {
 public:
  explicit constexpr EventName(const char* text) : text_(text) {}
  std::uint32_t id();

 private:
  const char* text_;
  std::atomic<std::uint64_t> cached_{0};  // attachment generation << 32 | id
};

inline void emit(EventName& name, EventKind kind, double value = 0) {
  if (events_on()) events_detail::write(name.id(), kind, value);
}
// For names that only exist at run time (the Python hooks).
inline void emit(std::uint32_t name, EventKind kind, double value = 0) {
  if (events_on()) events_detail::write(name, kind, value);
}

// A span for the length of a scope.
class ScopedEvent {
 public:
  explicit ScopedEvent(EventName& name) : name_(name) { emit(name_, EventKind::kBegin); }
  ~ScopedEvent() { emit(name_, EventKind::kEnd); }
  ScopedEvent(const ScopedEvent&) = delete;
  ScopedEvent& operator=(const ScopedEvent&) = delete;

 private:
  EventName& name_;
};

}  // namespace stoker
