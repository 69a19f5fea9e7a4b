#include "watch/recorder/recording.h"

#include <unistd.h>

#include <utility>

#include "stoker/base/files.h"
#include "watch/recorder/outcome.h"

namespace stoker::watch {

Result<std::unique_ptr<Recording>> Recording::begin(const std::vector<std::string>& command,
                                                    const RecordOptions& options) {
  auto made = create_run_directory(options.root, options.name.empty() ? run_name(command) : options.name);
  if (!made) return made.error();
  std::error_code ignored;
  const auto run = std::filesystem::absolute(*made, ignored);
  const auto undo = [&](const Error& error) {
    std::filesystem::remove_all(run, ignored);
    return error;
  };
  auto lock = RunLock::take(run);
  if (!lock) return undo(lock.error());
  auto trace = TraceWriter::open(FileSystem::real(), run / "trace");
  if (!trace) return undo(trace.error());
  auto ring = create_ring(run);
  if (!ring) return undo(ring.error());
  Json json = first_run_json(run, command, options);
  json.set("ring", ring->path);
  return std::unique_ptr<Recording>(
      new Recording(run, *std::move(ring), *std::move(lock), *std::move(trace), std::move(json)));
}

Recording::Recording(std::filesystem::path run, RingFile ring, RunLock lock, std::unique_ptr<TraceWriter> trace,
                     Json json)
    : run_(std::move(run)),
      ring_(std::move(ring)),
      lock_(std::move(lock)),
      trace_(std::move(trace)),
      json_(std::move(json)),
      drain_(ring_.ring, *trace_) {}

Recording::~Recording() = default;

Status Recording::started(int pid) {
  auto nvml = machine::Nvml::open();
  const std::string why = nvml ? "" : nvml.error().message;
  sampler_.emplace(machine::Root{}, pid, nvml ? std::optional(*std::move(nvml)) : std::nullopt, why);
  oom_kills_before_ = machine::cgroup_oom_kills();
  json_.set("trainee_pid", pid);
  const auto stat = machine::process_stat(pid);
  json_.set("trainee_start_ticks", stat ? (*stat).start_ticks : 0);
  return write_run_json(FileSystem::real(), run_, json_);
}

void Recording::tick(Nanoseconds now) {
  if (now >= next_sample_) {
    sample(now);
    next_sample_ = now + kSamplePeriod;
  }
  drain_.keep_other_threads(trace_->bytes_written() < bytes_allowed(now));
  drain_.take(static_cast<std::uint64_t>(now.count()));
  note(trace_->flush());
  if (now >= next_sync_) {
    note(trace_->sync());
    next_sync_ = now + kSyncPeriod;
  }
}

std::uint64_t Recording::bytes_allowed(Nanoseconds now) const {
  const double hours = std::chrono::duration<double, std::ratio<3600>>(now - began_).count();
  return kFullDetailBytes + static_cast<std::uint64_t>(hours * static_cast<double>(kBytesPerHour));
}

void Recording::sample(Nanoseconds now) {
  if (const auto text = FileSystem::real().read(run_ / "hook.json", std::size_t{1} << 20)) {
    const auto report = Json::parse(*text);
    if (report && (*report)["python"]["pid"].is_int())
      sampler_->set_trainee(static_cast<int>((*report)["python"]["pid"].as_int()));
  }
  for (const Reading& reading : sampler_->sample(now))
    trace_->sample(trace_->counter(reading.name, reading.unit), static_cast<std::uint64_t>(now.count()), reading.value);
}

void Recording::note(const Status& status) {
  if (!status && first_error_.empty()) first_error_ = status.error().message;
}

Result<RecordedRun> Recording::finish(int wait_status) {
  merge_hook_report(run_, json_);
  EndFacts facts;
  facts.wait_status = wait_status;
  facts.oom_kills_before = oom_kills_before_;
  facts.oom_kills_after = machine::cgroup_oom_kills();
  facts.memory_share = sampler_->memory_share();
  facts.exception = json_.has("exception");
  return close(outcome_json(facts), exit_code_of(wait_status));
}

Result<RecordedRun> Recording::finish_attached(bool ended) {
  merge_hook_report(run_, json_);
  return close(Json::object({{"kind", "finished"},
                             {"code", Json()},
                             {"why", ended ? "the recorded process ended" : "recording was stopped"}}),
               0);
}

Result<RecordedRun> Recording::close(Json outcome, int exit_code) {
  const Clock& clock = Clock::real();
  next_sample_ = Nanoseconds::max();  // there is nothing left to look at
  next_sync_ = Nanoseconds(0);
  tick(clock.monotonic());
  json_.set("ended_utc", utc_iso(clock.wall()));
  json_.set("ended_monotonic_ns", clock.monotonic().count());
  json_.set("outcome", std::move(outcome));
  json_.set("signals", sampler_->signals());
  json_.set("ring", Json());
  json_.set("trace", Json::object({{"size_bytes", trace_->bytes_written()}, {"left_out_events", drain_.left_out()}}));
  if (!first_error_.empty()) json_.set("recording_error", first_error_);
  ::unlink(ring_.path.c_str());
  STOKER_TRY(write_run_json(FileSystem::real(), run_, json_));
  remove_hook_files(run_);
  return RecordedRun{run_, exit_code, json_};
}

void Recording::abandon() {
  ::unlink(ring_.path.c_str());
  std::error_code ignored;
  std::filesystem::remove_all(run_, ignored);
}

}  // namespace stoker::watch
