#include <algorithm>

#include "stoker/base/files.h"
#include "stoker/base/run_directory.h"
#include "stoker/watch/run_data.h"
#include "watch/trace/trace_reader.h"

namespace stoker::watch {
namespace {

bool is_segment(const FileInfo& entry) {
  return !entry.is_directory && entry.name.starts_with("trace-") && entry.name.ends_with(".pftrace");
}

}  // namespace

Result<RunData> read_run(const std::filesystem::path& run) {
  FileSystem& fs = FileSystem::real();
  auto json = read_run_json(fs, run);
  if (!json) return json.error();
  TraceReader reader;
  const auto entries = fs.list(run / "trace");
  if (!entries && entries.code() != ErrorCode::kNotFound) return entries.error();
  if (entries) {
    for (const FileInfo& entry : *entries) {  // sorted by name, and so by number
      if (!is_segment(entry)) continue;
      // A live segment may grow between the list and the read.
      auto segment = fs.read(run / "trace" / entry.name, entry.size_bytes + (std::uint64_t{64} << 20));
      if (!segment) return segment.error();
      reader.add_segment(*segment);
    }
  }
  return reader.finish(*std::move(json));
}

}  // namespace stoker::watch
