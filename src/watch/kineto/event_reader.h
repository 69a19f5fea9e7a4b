// One event's JSON object to an Event.
#pragma once

#include <cstdint>
#include <string_view>

#include "watch/kineto/events.h"
#include "watch/kineto/scanner.h"

namespace stoker::watch::kineto {

enum class Reading { kKept, kNotNeeded, kUnreadableTime, kNegativeDuration, kNoDuration };

// The fields of one event as they stand in the window.
struct EventText {
  std::string_view phase, category, name, start, duration, process, thread, stream, correlation, device;
  std::string_view memory_device_type, memory_device, allocated, reserved;
};

// From behind the opening brace to behind the closing one.
Scan scan_event(Scanner& scanner, EventText& text);
// Interns what is kept.
Reading read_event(const EventText& text, Names& names, Lanes& lanes, Event& event);

}  // namespace stoker::watch::kineto
