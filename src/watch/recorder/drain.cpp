#include "watch/recorder/drain.h"

#include <cstring>
#include <string>

namespace stoker::watch {

std::uint64_t Drain::take(std::uint64_t now_ns) {
  std::uint64_t taken = 0;
  const std::uint64_t lost = reader_.drain([&](const Event& event) { taken += put(event) ? 1 : 0; });
  trace_.lost(lost, now_ns);
  return taken;
}

// The ring is the trainee's to write in: nothing in it is believed beyond its range.
bool Drain::put(const Event& event) {
  if (event.thread >= reader_.ring().header().slots) return false;
  Slot& slot = slot_of(event.thread);
  if (event.time_ns <= slot.known_until) return false;
  if (is_left_out(slot, event.kind)) {
    ++left_out_;
    return false;
  }
  switch (event.kind) {
    case EventKind::kBegin:
    case EventKind::kEnd:
    case EventKind::kInstant:
      trace_.event(slot.thread, name_of(event.name), event.kind, event.time_ns, event.value);
      return true;
    case EventKind::kCounter:
      trace_.sample(counter_of(event.name), event.time_ns, event.value);
      return true;
  }
  return false;
}

bool Drain::is_left_out(Slot& slot, EventKind kind) {
  if (kind == EventKind::kEnd && slot.left_out_depth > 0) {
    --slot.left_out_depth;
    return true;
  }
  if (kind != EventKind::kBegin || slot.main) return false;
  if (keep_other_threads_ && slot.left_out_depth == 0) return false;
  ++slot.left_out_depth;
  return true;
}

Drain::Slot& Drain::slot_of(std::uint32_t index) {
  if (slots_.size() <= index) slots_.resize(index + 1);
  const RingSlot& source = reader_.ring().slot(index);
  const std::uint64_t owner = std::uint64_t{source.pid.load()} << 32 | source.tid.load();
  Slot& slot = slots_[index];
  if (slot.owner == owner) return slot;
  ThreadInfo info;
  info.pid = static_cast<std::uint32_t>(owner >> 32);
  info.tid = static_cast<std::uint32_t>(owner);
  info.name.assign(source.thread_name, ::strnlen(source.thread_name, sizeof source.thread_name));
  const auto known = known_until_.find(owner);
  slot = {owner, trace_.thread(info), known == known_until_.end() ? 0 : known->second, info.pid == info.tid};
  return slot;
}

std::uint32_t Drain::counter_of(std::uint32_t ring_name) {
  const std::string text = reader_.ring().name_text(ring_name);
  return trace_.counter(text.empty() ? "unnamed" : text, "");
}

std::uint32_t Drain::name_of(std::uint32_t ring_name) {
  if (ring_name < names_.size() && names_[ring_name] != 0) return names_[ring_name] - 1;
  const std::string text = reader_.ring().name_text(ring_name);
  if (text.empty()) return trace_.name("unnamed");
  if (names_.size() <= ring_name) names_.resize(ring_name + 1);
  names_[ring_name] = trace_.name(text) + 1;
  return names_[ring_name] - 1;
}

}  // namespace stoker::watch
