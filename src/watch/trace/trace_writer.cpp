#include "watch/trace/trace_writer.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "stoker/base/hash.h"
#include "watch/trace/format.h"
#include "watch/trace/proto.h"

namespace stoker::watch {
namespace {

using proto::Writer;

// Track numbers: 1 << 40 | pid, 2 << 40 | thread, 3 << 40 | counter.
std::uint64_t process_uuid(std::uint32_t pid) { return std::uint64_t{1} << 40 | pid; }
std::uint64_t thread_uuid(std::uint32_t index) { return std::uint64_t{2} << 40 | index; }
std::uint64_t counter_uuid(std::uint32_t index) { return std::uint64_t{3} << 40 | index; }

std::string clock_reading(std::uint64_t id, Nanoseconds time) {
  std::string out;
  Writer writer(out);
  writer.varint(1, id);
  writer.varint(2, static_cast<std::uint64_t>(time.count()));
  return out;
}

std::string little_endian(std::uint32_t a, std::uint32_t b) {
  std::string out;
  for (const std::uint32_t word : {a, b}) {
    for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>(word >> shift);
  }
  return out;
}

std::string segment_name(std::uint32_t number) { return fmt::format("trace-{:05}.pftrace", number); }

// One more than the highest segment in `folder`.
std::uint32_t next_segment(FileSystem& fs, const std::filesystem::path& folder) {
  std::uint32_t next = 0;
  const auto entries = fs.list(folder);
  if (!entries) return 0;
  for (const FileInfo& entry : *entries) {
    std::uint32_t number = 0;
    if (!entry.name.starts_with("trace-") || !entry.name.ends_with(".pftrace")) continue;
    const char* digits = entry.name.data() + 6;
    if (std::from_chars(digits, entry.name.data() + entry.name.size(), number).ec == std::errc())
      next = std::max(next, number + 1);
  }
  return next;
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::open(FileSystem& fs, const std::filesystem::path& folder,
                                                       const Clock& clock, TraceOptions options) {
  STOKER_TRY(fs.create_directories(folder));
  std::unique_ptr<TraceWriter> writer(new TraceWriter(fs, folder, clock, options));
  writer->segment_ = next_segment(fs, folder);
  STOKER_TRY(writer->begin_segment());
  return writer;
}

Status TraceWriter::begin_segment() {
  auto file = fs_.create(folder_ / segment_name(segment_));
  if (!file) return file.error();
  file_ = std::move(*file);
  segment_bytes_ = 0;
  put_preamble();
  return {};
}

// What makes a segment readable by itself: the clock, and every name and track so far.
void TraceWriter::put_preamble() {
  std::string clocks;
  Writer snapshot(clocks);
  snapshot.bytes(format::kSnapshotClock, clock_reading(format::kClockMonotonic, clock_.monotonic()));
  snapshot.bytes(format::kSnapshotClock, clock_reading(format::kClockRealtime, clock_.wall()));
  snapshot.varint(format::kSnapshotPrimary, format::kClockMonotonic);
  std::string defaults;
  Writer(defaults).varint(format::kDefaultsClockId, format::kClockMonotonic);

  std::string body;
  Writer packet(body);
  packet.bytes(format::packet::kClockSnapshot, clocks);
  packet.bytes(format::packet::kPacketDefaults, defaults);
  put_packet(body, format::kStateCleared);

  std::vector<std::uint32_t> pids;
  for (const ThreadInfo& thread : threads_) pids.push_back(thread.pid);
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  for (const std::uint32_t pid : pids) put_process(pid);
  for (std::uint32_t i = 0; i < threads_.size(); ++i) put_thread(i);
  for (std::uint32_t i = 0; i < counters_.size(); ++i) put_counter(i);
  for (std::uint32_t i = 0; i < names_.size(); ++i) put_name(i);
}

void TraceWriter::put_packet(std::string_view body, std::uint64_t flags) {
  std::string whole(body);
  Writer packet(whole);
  packet.varint(format::packet::kSequenceId, format::kSequence);
  packet.varint(format::packet::kSequenceFlags, flags);
  Writer(frame_).bytes(format::kPacket, whole);
}

void TraceWriter::put_process(std::uint32_t pid) {
  std::string process;
  Writer(process).varint(1, pid);
  Writer(process).bytes(format::track::kProcessName, "trainee");
  std::string descriptor;
  Writer(descriptor).varint(format::track::kUuid, process_uuid(pid));
  Writer(descriptor).bytes(format::track::kProcess, process);
  std::string body;
  Writer(body).bytes(format::packet::kTrackDescriptor, descriptor);
  put_packet(body, 0);
}

void TraceWriter::put_thread(std::uint32_t index) {
  const ThreadInfo& info = threads_[index];
  std::string thread;
  Writer writer(thread);
  writer.varint(1, info.pid);
  writer.varint(2, info.tid);
  writer.bytes(format::track::kThreadName, info.name);
  std::string descriptor;
  Writer track(descriptor);
  track.varint(format::track::kUuid, thread_uuid(index));
  track.varint(format::track::kParent, process_uuid(info.pid));
  track.bytes(format::track::kThread, thread);
  std::string body;
  Writer(body).bytes(format::packet::kTrackDescriptor, descriptor);
  put_packet(body, 0);
}

void TraceWriter::put_counter(std::uint32_t index) {
  const CounterTrack& info = counters_[index];
  std::string counter;
  Writer(counter).bytes(format::track::kUnitName, info.unit);
  std::string descriptor;
  Writer track(descriptor);
  track.varint(format::track::kUuid, counter_uuid(index));
  track.bytes(format::track::kName, info.name);
  track.bytes(format::track::kCounter, counter);
  std::string body;
  Writer(body).bytes(format::packet::kTrackDescriptor, descriptor);
  put_packet(body, 0);
}

void TraceWriter::put_name(std::uint32_t index) {
  std::string entry;
  Writer(entry).varint(1, index + 1);  // Perfetto reserves 0
  Writer(entry).bytes(2, names_[index]);
  std::string interned;
  Writer(interned).bytes(format::kInternedNames, entry);
  std::string body;
  Writer(body).bytes(format::packet::kInternedData, interned);
  put_packet(body, format::kNeedsState);
}

std::uint32_t TraceWriter::name(std::string_view text) {
  const auto [found, fresh] = name_numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(names_.size()));
  if (fresh) {
    names_.emplace_back(text);
    put_name(found->second);
  }
  return found->second;
}

std::uint32_t TraceWriter::thread(const ThreadInfo& info) {
  const auto same = [&](const ThreadInfo& known) { return known.pid == info.pid && known.tid == info.tid; };
  const auto found = std::find_if(threads_.begin(), threads_.end(), same);
  if (found != threads_.end()) return static_cast<std::uint32_t>(found - threads_.begin());
  const bool known_process =
      std::any_of(threads_.begin(), threads_.end(), [&](const ThreadInfo& known) { return known.pid == info.pid; });
  threads_.push_back(info);
  if (!known_process) put_process(info.pid);
  put_thread(static_cast<std::uint32_t>(threads_.size() - 1));
  return static_cast<std::uint32_t>(threads_.size() - 1);
}

std::uint32_t TraceWriter::counter(std::string_view text, std::string_view unit) {
  const auto [found, fresh] =
      counter_numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(counters_.size()));
  if (fresh) {
    counters_.push_back({std::string(text), std::string(unit)});
    put_counter(found->second);
  }
  return found->second;
}

void TraceWriter::put_event(std::uint64_t time_ns, std::string_view body) {
  std::string whole;
  Writer packet(whole);
  packet.varint(format::packet::kTimestamp, time_ns);
  packet.bytes(format::packet::kTrackEvent, body);
  put_packet(whole, format::kNeedsState);
}

void TraceWriter::event(std::uint32_t thread, std::uint32_t name, EventKind kind, std::uint64_t time_ns, double value) {
  std::string body;
  Writer event(body);
  event.varint(format::event::kType, static_cast<std::uint64_t>(kind));
  event.varint(format::event::kNameIid, name + 1);
  event.varint(format::event::kTrackUuid, thread_uuid(thread));
  if (value != 0) {
    std::string annotation;
    Writer(annotation).fixed64(format::event::kAnnotationDouble, value);
    Writer(annotation).bytes(format::event::kAnnotationName, "value");
    event.bytes(format::event::kAnnotation, annotation);
  }
  put_event(time_ns, body);
}

void TraceWriter::sample(std::uint32_t counter, std::uint64_t time_ns, double value) {
  std::string body;
  Writer event(body);
  event.varint(format::event::kType, static_cast<std::uint64_t>(EventKind::kCounter));
  event.varint(format::event::kTrackUuid, counter_uuid(counter));
  event.fixed64(format::event::kCounterValue, value);
  put_event(time_ns, body);
}

void TraceWriter::lost(std::uint64_t events, std::uint64_t time_ns) {
  if (events == 0) return;
  lost_ += events;
  sample(counter(format::kLostCounter, "count"), time_ns, static_cast<double>(lost_));
}

Status TraceWriter::flush() {
  if (frame_.empty()) return {};
  if (file_ == nullptr) {  // an earlier failure left no segment to append to
    std::string events;
    events.swap(frame_);
    STOKER_TRY(begin_segment());
    frame_ += events;
  }
  std::string frame;
  frame.swap(frame_);
  const auto size = static_cast<std::uint32_t>(frame.size());
  const std::uint32_t crc = crc32(std::as_bytes(std::span(frame)));
  Writer(frame).bytes(format::kCheck, little_endian(size, crc));
  if (Status written = file_->append(std::as_bytes(std::span(frame))); !written) {
    // Its end is now unknown. The next frame begins a segment; one without a whole frame is begun anew.
    file_.reset();
    if (segment_bytes_ > 0) ++segment_;
    return written;
  }
  segment_bytes_ += frame.size();
  bytes_written_ += frame.size();
  if (segment_bytes_ < options_.segment_bytes) return {};
  STOKER_TRY(file_->close());
  file_.reset();
  ++segment_;
  return begin_segment();
}

Status TraceWriter::sync() { return file_ == nullptr ? Status() : file_->sync(); }

}  // namespace stoker::watch
