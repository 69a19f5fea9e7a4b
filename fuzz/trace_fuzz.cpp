// A trace segment from anywhere: the reader stops, and holds no more than the bytes can account for. Frames are given a
// right checksum here, so that what lies behind the checksum is reached too.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "stoker/base/hash.h"
#include "watch/trace/trace_reader.h"

namespace {

void check(std::string_view segment) {
  stoker::watch::TraceReader reader;
  reader.add_segment(segment);
  reader.add_segment(segment);
  const stoker::watch::RunData data = reader.finish({});
  const std::size_t held = data.spans.size() + data.instants.size() + data.threads.size() + data.counters.size();
  if (held > segment.size()) __builtin_trap();
  for (const auto& span : data.spans) {
    if (span.name >= data.names.size() || span.thread >= data.threads.size()) __builtin_trap();
  }
}

std::string little_endian(std::uint32_t value) {
  std::string out;
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  const std::uint32_t crc = stoker::crc32(std::as_bytes(std::span(bytes)));
  check(bytes + "\xc2\x3e\x08" + little_endian(static_cast<std::uint32_t>(size)) + little_endian(crc));
  return 0;
}
