#include "stoker/watch/kineto.h"

#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "watch/kineto/analyse.h"
#include "watch/kineto/gpu_work.h"

namespace stoker::watch {
namespace {

Result<std::unique_ptr<kineto::ByteSource>> open_trace(FileSystem& fs, const std::filesystem::path& file,
                                                       const std::string& shown) {
  const auto info = fs.stat(file);
  if (!info) return info.error();
  if (info->is_directory) {
    return Error{ErrorCode::kBadInput, shown + " is a directory", "give the trace files in it: " + shown + "/*.json*"};
  }
  auto opened = fs.open(file);
  if (!opened) return opened.error();
  return kineto::open_source(std::move(*opened), shown);
}

void describe(const kineto::TraceText& trace, std::int64_t place, KinetoRank& out) {
  out.rank = trace.distributed["rank"].as_int(place);
  if (trace.distributed["world_size"].is_int()) out.world_size = trace.distributed["world_size"].as_int();
  if (trace.devices.is_null()) {
    out.device = Signal<std::string>::unavailable("the trace has no deviceProperties");
  } else if (!trace.devices.items().empty()) {
    // All are of one kind in practice; the work says which of them was used.
    out.device = trace.devices.items().front()["name"].as_string();
  }
  out.text_bytes = trace.text_bytes;
  out.events_seen = trace.seen;
  out.events_kept = trace.events.size();
  out.table_bytes = trace.events.bytes() + trace.names.bytes();
  out.problems = trace.problems;
}

}  // namespace

const char* name(WorkClass work) {
  switch (work) {
    case WorkClass::kCompute:
      return "compute";
    case WorkClass::kCommunication:
      return "communication";
    case WorkClass::kMemory:
      return "memory";
  }
  return "compute";
}

Result<KinetoRank> kineto::analyse(ByteSource& source, const std::filesystem::path& file, std::int64_t place,
                                   const KinetoOptions& options) {
  auto read = read_text(source, printable(file.native()), options);
  if (!read) return read.error();
  const TraceText& trace = *read;

  KinetoRank out;
  out.file = file;
  describe(trace, place, out);
  std::int64_t first = INT64_MAX;
  std::int64_t last = INT64_MIN;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    first = std::min(first, event.start_ns);
    last = std::max(last, event.kind == Kind::kMemory ? event.start_ns : event.end_ns());
  }
  if (trace.events.size() > 0) out.duration_ns = last - first;
  const GpuWork work = select_work(trace);
  out.window = work.window;
  out.gpu = measure_gpu(trace, work);
  out.steps = measure_steps(trace, work, first);
  out.ops = measure_ops(trace);
  out.memory = measure_memory(trace, first);
  return out;
}

Result<KinetoRank> read_kineto(FileSystem& fs, const std::filesystem::path& file, std::int64_t place,
                               const KinetoOptions& options) {
  auto source = open_trace(fs, file, printable(file.native()));
  if (!source) return source.error();
  return kineto::analyse(**source, file, place, options);
}

}  // namespace stoker::watch
