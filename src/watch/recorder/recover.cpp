#include <unistd.h>

#include <algorithm>
#include <unordered_map>

#include "stoker/base/clock.h"
#include "stoker/base/files.h"
#include "stoker/machine/process.h"
#include "stoker/watch/recorder.h"
#include "stoker/watch/run_data.h"
#include "watch/recorder/drain.h"
#include "watch/recorder/run_file.h"

namespace stoker::watch {
namespace {

// The last time that the trace has of each thread, by pid << 32 | tid.
std::unordered_map<std::uint64_t, std::uint64_t> last_times(const RunData& data) {
  std::vector<std::uint64_t> last(data.threads.size(), 0);
  for (const Span& span : data.spans)
    last[span.thread] = std::max({last[span.thread], span.begin_ns, span.open ? 0 : span.end_ns});
  for (const Instant& instant : data.instants) last[instant.thread] = std::max(last[instant.thread], instant.time_ns);
  std::unordered_map<std::uint64_t, std::uint64_t> out;
  for (std::size_t i = 0; i < last.size(); ++i)
    out[std::uint64_t{data.threads[i].pid} << 32 | data.threads[i].tid] = last[i];
  return out;
}

// What the ring holds beyond the trace goes into a segment of its own. Returns the number of events.
Result<std::uint64_t> take_ring(const std::filesystem::path& run, const std::string& ring_path) {
  auto ring = Ring::open(ring_path);
  if (!ring) return ring.error();
  auto data = read_run(run);
  if (!data) return data.error();
  auto trace = TraceWriter::open(FileSystem::real(), run / "trace");
  if (!trace) return trace.error();
  Drain drain(*ring, **trace);
  drain.skip_until(last_times(*data));
  const std::uint64_t taken = drain.take(data->last_ns);
  STOKER_TRY((*trace)->flush());
  STOKER_TRY((*trace)->sync());
  return taken;
}

std::string why_lost(const Result<std::uint64_t>& taken) {
  if (taken) return "the recorder was killed; the events up to the trainee's end were taken from its ring";
  if (taken.code() == ErrorCode::kNotFound)
    return "the machine or the recorder went away with the event ring; the trace is whole up to its last block";
  return "the recorder was killed, and its ring could not be read: " + taken.error().message;
}

}  // namespace

Result<bool> recover_run(const std::filesystem::path& run) {
  auto json = read_run_json(FileSystem::real(), run);
  if (!json) return json.error();
  if ((*json)["outcome"]["kind"].as_string() != "running") return false;
  auto lock = RunLock::take(run);
  if (!lock && lock.code() == ErrorCode::kInUse) return false;
  if (!lock) return lock.error();

  const std::string ring_path = (*json)["ring"].as_string();
  const auto taken = take_ring(run, ring_path);
  if (!taken && (taken.code() == ErrorCode::kIo || taken.code() == ErrorCode::kNoSpace)) return taken.error();
  const bool training = machine::process_alive(static_cast<int>((*json)["trainee_pid"].as_int()),
                                               static_cast<std::uint64_t>((*json)["trainee_start_ticks"].as_int()));
  if (training && taken) return *taken > 0;

  merge_hook_report(run, *json);
  json->set("outcome",
            Json::object({{"kind", "lost"}, {"code", Json()}, {"signal", Json()}, {"why", why_lost(taken)}}));
  json->set("ring", Json());
  json->set("ended_utc", Json());
  if (taken) ::unlink(ring_path.c_str());  // only what has proved to be a ring: run.json may come from anywhere
  STOKER_TRY(write_run_json(FileSystem::real(), run, *json));
  remove_hook_files(run);
  return true;
}

}  // namespace stoker::watch
