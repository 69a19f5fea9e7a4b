#include "watch/trace/trace_reader.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "stoker/base/events.h"
#include "stoker/base/hash.h"
#include "watch/trace/format.h"

namespace stoker::watch {
namespace {

using proto::Field;
using proto::Reader;
using proto::Wire;

// An end that matches nothing this near to the innermost open span is an orphan (its begin was lost).
constexpr std::size_t kDeepestSearch = 64;

std::uint32_t word(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

// The last field of this number, or an empty one.
Field find(std::string_view message, std::uint32_t number, Wire wire) {
  Field found;
  Reader reader(message);
  for (Field field; reader.next(field);) {
    if (field.number == number && field.wire == wire) found = field;
  }
  return found;
}

}  // namespace

std::size_t valid_prefix(std::string_view segment) {
  std::size_t start = 0;
  std::size_t valid = 0;
  Reader reader(segment);
  std::size_t before = 0;  // offset of the field at hand
  for (Field field; reader.next(field); before = reader.offset()) {
    if (field.number == format::kPacket && field.wire == Wire::kBytes) continue;
    if (field.number != format::kCheck || field.text.size() != format::kCheckBody) break;
    const std::string_view frame = segment.substr(start, before - start);
    if (word(field.text, 0) != frame.size() || word(field.text, 4) != crc32(std::as_bytes(std::span(frame)))) break;
    start = valid = reader.offset();
  }
  return valid;
}

void TraceReader::add_segment(std::string_view segment) {
  const std::size_t valid = valid_prefix(segment);
  data_.bad_bytes += segment.size() - valid;
  iids_.clear();
  tracks_.clear();
  Reader reader(segment.substr(0, valid));
  for (Field field; reader.next(field);) {
    if (field.number == format::kPacket) add_packet(field.text);
  }
}

void TraceReader::add_packet(std::string_view packet) {
  Reader reader(packet);
  std::uint64_t time_ns = 0;
  std::string_view event;
  for (Field field; reader.next(field);) {
    if (field.number == format::packet::kTimestamp) time_ns = field.value;
    if (field.number == format::packet::kTrackEvent) event = field.text;
    if (field.number == format::packet::kTrackDescriptor) add_track(field.text);
    if (field.number == format::packet::kInternedData) add_names(field.text);
  }
  if (!event.empty()) add_event(time_ns, event);
}

void TraceReader::add_track(std::string_view descriptor) {
  const std::uint64_t uuid = find(descriptor, format::track::kUuid, Wire::kVarint).value;
  const std::string_view name = find(descriptor, format::track::kName, Wire::kBytes).text;
  Reader reader(descriptor);
  for (Field field; reader.next(field);) {
    if (field.number == format::track::kThread) {
      ThreadInfo info;
      info.pid = static_cast<std::uint32_t>(find(field.text, 1, Wire::kVarint).value);
      info.tid = static_cast<std::uint32_t>(find(field.text, 2, Wire::kVarint).value);
      info.name = find(field.text, format::track::kThreadName, Wire::kBytes).text;
      tracks_[uuid] = {false, thread_index(info)};
    } else if (field.number == format::track::kCounter) {
      const std::string_view unit = find(field.text, format::track::kUnitName, Wire::kBytes).text;
      tracks_[uuid] = {true, counter_index(name, unit)};
    }
  }
}

void TraceReader::add_names(std::string_view interned) {
  Reader reader(interned);
  for (Field field; reader.next(field);) {
    if (field.number != format::kInternedNames) continue;
    iids_[find(field.text, 1, Wire::kVarint).value] = intern(find(field.text, 2, Wire::kBytes).text);
  }
}

TraceReader::TrackEvent TraceReader::parse_event(std::string_view bytes) {
  TrackEvent event;
  Reader reader(bytes);
  for (Field field; reader.next(field);) {
    if (field.number == format::event::kType) event.type = field.value;
    if (field.number == format::event::kNameIid) event.name_iid = field.value;
    if (field.number == format::event::kTrackUuid) event.track_uuid = field.value;
    if (field.number == format::event::kCounterValue) event.value = field.as_double();
    if (field.number == format::event::kAnnotation)
      event.value = find(field.text, format::event::kAnnotationDouble, Wire::kFixed64).as_double();
  }
  if (!std::isfinite(event.value)) event.value = 0;
  return event;
}

void TraceReader::add_event(std::uint64_t time_ns, std::string_view bytes) {
  const TrackEvent event = parse_event(bytes);
  const auto track = tracks_.find(event.track_uuid);
  if (track == tracks_.end()) return;
  const std::uint32_t index = track->second.index;
  const auto kind = static_cast<EventKind>(event.type);
  if (track->second.is_counter) {
    if (kind == EventKind::kCounter) sample(index, time_ns, event.value);
  } else if (kind == EventKind::kBegin) {
    begin(event, index, time_ns);
  } else if (kind == EventKind::kEnd) {
    end(event, index, time_ns);
  } else if (kind == EventKind::kInstant) {
    saw(time_ns);
    data_.instants.push_back({name_index(event.name_iid), index, time_ns, event.value});
  }
}

void TraceReader::begin(const TrackEvent& event, std::uint32_t thread, std::uint64_t time_ns) {
  saw(time_ns);
  open_[thread].push_back(data_.spans.size());
  data_.spans.push_back({name_index(event.name_iid), thread, time_ns, time_ns, true, 0});
}

// Spans that were opened inside the one that ends, and whose own end was lost, end with it.
void TraceReader::end(const TrackEvent& event, std::uint32_t thread, std::uint64_t time_ns) {
  saw(time_ns);
  const std::uint32_t name = name_index(event.name_iid);
  auto& stack = open_[thread];
  std::size_t depth = 0;
  while (depth < std::min(stack.size(), kDeepestSearch) && data_.spans[stack[stack.size() - 1 - depth]].name != name)
    ++depth;
  if (depth == std::min(stack.size(), kDeepestSearch)) return;
  for (; depth > 0; --depth, stack.pop_back()) data_.spans[stack.back()].end_ns = time_ns;
  Span& span = data_.spans[stack.back()];
  stack.pop_back();
  span.end_ns = std::max(time_ns, span.begin_ns);
  span.open = false;
  span.value = event.value;
}

void TraceReader::sample(std::uint32_t counter, std::uint64_t time_ns, double value) {
  Counter& curve = data_.counters[counter];
  if (curve.name == format::kLostCounter) {
    data_.lost_events = static_cast<std::uint64_t>(std::clamp(value, 0.0, 1e18));
    return;
  }
  saw(time_ns);
  curve.samples.push_back({time_ns, value});
}

void TraceReader::saw(std::uint64_t time_ns) {
  data_.first_ns = data_.first_ns == 0 ? time_ns : std::min(data_.first_ns, time_ns);
  data_.last_ns = std::max(data_.last_ns, time_ns);
}

std::uint32_t TraceReader::name_index(std::uint64_t iid) {
  const auto found = iids_.find(iid);
  return found == iids_.end() ? intern("unnamed") : found->second;
}

std::uint32_t TraceReader::intern(std::string_view text) {
  const auto [found, fresh] =
      name_numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(data_.names.size()));
  if (fresh) data_.names.emplace_back(text);
  return found->second;
}

std::uint32_t TraceReader::thread_index(const ThreadInfo& info) {
  const auto [found, fresh] = thread_numbers_.try_emplace(std::uint64_t{info.pid} << 32 | info.tid,
                                                          static_cast<std::uint32_t>(data_.threads.size()));
  if (fresh) {
    data_.threads.push_back(info);
    open_.emplace_back();
  }
  return found->second;
}

std::uint32_t TraceReader::counter_index(std::string_view text, std::string_view unit) {
  const auto [found, fresh] =
      counter_numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(data_.counters.size()));
  if (fresh) data_.counters.push_back({std::string(text), std::string(unit), {}});
  return found->second;
}

RunData TraceReader::finish(Json run) {
  for (const auto& stack : open_) {
    for (const std::size_t span : stack) data_.spans[span].end_ns = data_.last_ns;
  }
  std::erase_if(data_.counters, [](const Counter& counter) { return counter.name == format::kLostCounter; });
  std::stable_sort(data_.spans.begin(), data_.spans.end(), [](const Span& a, const Span& b) {
    return a.thread != b.thread ? a.thread < b.thread : a.begin_ns < b.begin_ns;
  });
  std::stable_sort(data_.instants.begin(), data_.instants.end(),
                   [](const Instant& a, const Instant& b) { return a.time_ns < b.time_ns; });
  const auto python = run["python"]["pid"].as_int(run["trainee_pid"].as_int());
  for (ThreadInfo& thread : data_.threads) thread.main = thread.pid == thread.tid && thread.pid == python;
  data_.run = std::move(run);
  return std::move(data_);
}

}  // namespace stoker::watch
