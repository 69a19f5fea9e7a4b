// From a trace's text to its events: one window of text at a time, never the whole.
#pragma once

#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/watch/kineto.h"
#include "watch/kineto/events.h"
#include "watch/kineto/source.h"

namespace stoker::watch::kineto {

struct TraceText {
  explicit TraceText(std::size_t max_name_bytes) : names(max_name_bytes) {}
  EventTable events;
  Names names;
  Lanes lanes;
  Json devices;      // "deviceProperties", null where there is none
  Json distributed;  // "distributedInfo"
  std::uint64_t seen = 0;
  std::uint64_t text_bytes = 0;
  std::vector<std::string> problems;
};

// Errors: kBadInput (no trace), kIo, kCancelled. Damage is no error: `problems` has it.
Result<TraceText> read_text(ByteSource& source, const std::string& shown_name, const KinetoOptions& options);

}  // namespace stoker::watch::kineto
