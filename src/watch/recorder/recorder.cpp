#include "stoker/watch/recorder.h"

#include <sys/wait.h>

#include <cerrno>

#include "watch/recorder/child.h"
#include "watch/recorder/recording.h"

namespace stoker::watch {
namespace {

std::vector<std::string> trainee_environment(const Recording& recording, const RecordOptions& options) {
  std::vector<std::string> out = {"STOKER_RING=" + recording.ring_path(), "STOKER_RUN=" + recording.run().native()};
  out.push_back(std::string("STOKER_ACCELERATE=") + (options.accelerate ? "1" : ""));
  if (!options.package.empty()) out.push_back(python_path_for(options.package.native()));
  return out;
}

// Drains until the child has ended; its status for waitpid().
int record_until_end(Recording& recording, SignalGate& gate, pid_t child) {
  const Clock& clock = Clock::real();
  int status = 0;
  for (;;) {
    recording.tick(clock.monotonic());
    const int signal = gate.wait(kDrainPeriod);
    if (signal == SIGTERM || signal == SIGHUP) ::kill(child, signal);
    // Asked on every turn: a SIGCHLD may be merged with an earlier one.
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno == ECHILD)) return status;
  }
}

}  // namespace

Result<RecordedRun> record(const std::vector<std::string>& command, const RecordOptions& options) {
  STOKER_CHECK(!command.empty(), "record() needs a command");
  auto gate = SignalGate::open();
  if (!gate) return gate.error();
  auto recording = Recording::begin(command, options);
  if (!recording) return recording.error();
  const auto child = start_trainee(command, trainee_environment(**recording, options), *gate, options.stdout_to_stderr);
  if (!child) {
    (*recording)->abandon();
    return child.error();
  }
  // A run.json that cannot be written now is written at the end; the trainee is not to suffer for it.
  (void)(*recording)->started(*child);
  return (*recording)->finish(record_until_end(**recording, *gate, *child));
}

Result<RecordedRun> record_process(int pid, const RecordOptions& options,
                                   const std::function<void(const std::filesystem::path&, const std::string&)>& ready) {
  const auto stat = machine::process_stat(pid);
  if (!stat) return Error{ErrorCode::kNotFound, stat.why};
  auto gate = SignalGate::open();
  if (!gate) return gate.error();
  auto recording = Recording::begin({}, options);
  if (!recording) return recording.error();
  STOKER_TRY((*recording)->started(pid));
  ready((*recording)->run(), (*recording)->ring_path());
  for (;;) {
    (*recording)->tick(Clock::real().monotonic());
    const int signal = gate->wait(kDrainPeriod);
    if (signal != 0 && signal != SIGCHLD) return (*recording)->finish_attached(false);
    if (!machine::process_alive(pid, (*stat).start_ticks)) return (*recording)->finish_attached(true);
  }
}

}  // namespace stoker::watch
