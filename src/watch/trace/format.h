// A trace segment, byte by byte (docs/formats/trace.md has the same for people):
//
//   segment  = frame*                                     trace-00000.pftrace, trace-00001.pftrace, …
//   frame    = packet* check
//   packet   = 0A <varint n> <n bytes of TracePacket>      field 1 of perfetto.protos.Trace
//   check    = C2 3E 08 <u32 n> <u32 crc>                  field 1000, which Perfetto skips; little-endian
//
// A frame is valid if its check's n is the number of bytes between the previous check (or the segment's start) and this
// one, and crc is the CRC-32 (IEEE) of those bytes. A reader takes valid frames from the front and stops at the first
// bad one; nothing after it in that segment counts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker::watch::format {

inline constexpr std::uint32_t kPacket = 1;
inline constexpr std::uint32_t kCheck = 1000;
inline constexpr std::size_t kCheckBody = 8;

// The numbers of Perfetto's public .proto files, as far as we write them.
namespace packet {
inline constexpr std::uint32_t kClockSnapshot = 6;
inline constexpr std::uint32_t kTimestamp = 8;
inline constexpr std::uint32_t kSequenceId = 10;
inline constexpr std::uint32_t kTrackEvent = 11;
inline constexpr std::uint32_t kInternedData = 12;
inline constexpr std::uint32_t kSequenceFlags = 13;
inline constexpr std::uint32_t kTimestampClockId = 58;
inline constexpr std::uint32_t kPacketDefaults = 59;
inline constexpr std::uint32_t kTrackDescriptor = 60;
}  // namespace packet

inline constexpr std::uint64_t kSequence = 1;          // one writer, one sequence
inline constexpr std::uint64_t kStateCleared = 1;      // SEQ_INCREMENTAL_STATE_CLEARED
inline constexpr std::uint64_t kNeedsState = 2;        // SEQ_NEEDS_INCREMENTAL_STATE
inline constexpr std::uint64_t kClockRealtime = 1;     // BUILTIN_CLOCK_REALTIME
inline constexpr std::uint64_t kClockMonotonic = 3;    // BUILTIN_CLOCK_MONOTONIC
inline constexpr std::uint32_t kSnapshotClock = 1;     // ClockSnapshot.clocks {id = 1, timestamp = 2}
inline constexpr std::uint32_t kSnapshotPrimary = 2;   // ClockSnapshot.primary_trace_clock
inline constexpr std::uint32_t kInternedNames = 2;     // InternedData.event_names {iid = 1, name = 2}
inline constexpr std::uint32_t kDefaultsClockId = 58;  // TracePacketDefaults.timestamp_clock_id

namespace track {
inline constexpr std::uint32_t kUuid = 1;
inline constexpr std::uint32_t kName = 2;
inline constexpr std::uint32_t kProcess = 3;  // {pid = 1, process_name = 6}
inline constexpr std::uint32_t kThread = 4;   // {pid = 1, tid = 2, thread_name = 5}
inline constexpr std::uint32_t kParent = 5;
inline constexpr std::uint32_t kCounter = 8;  // {unit_name = 6}
inline constexpr std::uint32_t kProcessName = 6;
inline constexpr std::uint32_t kThreadName = 5;
inline constexpr std::uint32_t kUnitName = 6;
}  // namespace track

namespace event {
inline constexpr std::uint32_t kAnnotation = 4;  // DebugAnnotation {double_value = 5, name = 10}
inline constexpr std::uint32_t kType = 9;        // 1 begin, 2 end, 3 instant, 4 counter: EventKind's own numbers
inline constexpr std::uint32_t kNameIid = 10;
inline constexpr std::uint32_t kTrackUuid = 11;
inline constexpr std::uint32_t kCounterValue = 44;  // double
inline constexpr std::uint32_t kAnnotationDouble = 5;
inline constexpr std::uint32_t kAnnotationName = 10;
}  // namespace event

// The counter under which the writer keeps the number of events that the ring lost so far.
inline constexpr char kLostCounter[] = "trace.lost";

}  // namespace stoker::watch::format
