// One recording under way: ring to trace, samples, run.json. recorder.cpp drives it.
#pragma once

#include <memory>
#include <optional>

#include "stoker/base/clock.h"
#include "watch/recorder/drain.h"
#include "watch/recorder/run_file.h"
#include "watch/recorder/sampler.h"
#include "watch/trace/trace_writer.h"

namespace stoker::watch {

inline constexpr std::chrono::milliseconds kDrainPeriod{200};
inline constexpr std::chrono::seconds kSamplePeriod{1};
inline constexpr std::chrono::seconds kSyncPeriod{5};
// What a trace may grow by with every thread in it; beyond, the main thread alone is kept.
inline constexpr std::uint64_t kFullDetailBytes = 8'000'000;
inline constexpr std::uint64_t kBytesPerHour = 20'000'000;

// Threads: one owner. A disk that fails while it records costs events, not the run: the first error is kept in
// run.json.
class Recording {
 public:
  // Makes the run's folder, its ring and its trace. Errors: kNoSpace, kIo; nothing is left behind.
  static Result<std::unique_ptr<Recording>> begin(const std::vector<std::string>& command,
                                                  const RecordOptions& options);
  ~Recording();

  const std::filesystem::path& run() const { return run_; }
  const std::string& ring_path() const { return ring_.path; }

  // `pid` is there: from now on it is sampled. Writes run.json.
  Status started(int pid);
  // Does what is due at `now`: drains, samples, syncs.
  void tick(Nanoseconds now);
  // The last events and the outcome. Removes the ring.
  Result<RecordedRun> finish(int wait_status);
  // The same for a process that was not our child and whose end has no status.
  Result<RecordedRun> finish_attached(bool ended);
  // Removes everything: the command did not start.
  void abandon();

 private:
  Recording(std::filesystem::path run, RingFile ring, RunLock lock, std::unique_ptr<TraceWriter> trace, Json json);

  void sample(Nanoseconds now);
  std::uint64_t bytes_allowed(Nanoseconds now) const;
  void note(const Status& status);
  Result<RecordedRun> close(Json outcome, int exit_code);

  const std::filesystem::path run_;
  const RingFile ring_;
  const RunLock lock_;
  std::unique_ptr<TraceWriter> trace_;
  Json json_;
  Drain drain_;
  std::optional<Sampler> sampler_;
  Signal<std::uint64_t> oom_kills_before_;
  const Nanoseconds began_ = Clock::real().monotonic();
  Nanoseconds next_sample_{0};
  Nanoseconds next_sync_{0};
  std::string first_error_;
};

}  // namespace stoker::watch
