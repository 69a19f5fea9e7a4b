// Time, passed in so that no test sleeps and no expected number depends on the host.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace stoker {

using Nanoseconds = std::chrono::nanoseconds;

// Threads: every implementation may be shared.
class Clock {
 public:
  virtual ~Clock() = default;
  // CLOCK_MONOTONIC, the time base of every event and trace (Python's time.monotonic_ns() reads the same clock).
  virtual Nanoseconds monotonic() const = 0;
  // Nanoseconds since 1970-01-01 UTC.
  virtual Nanoseconds wall() const = 0;

  static const Clock& real();
};

// "20261201T183543Z", sortable; used in directory names.
std::string utc_stamp(Nanoseconds wall);
// "2026-12-01T18:35:43Z", for people and JSON.
std::string utc_iso(Nanoseconds wall);

}  // namespace stoker
