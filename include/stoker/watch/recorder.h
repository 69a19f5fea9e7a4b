// The flight recorder: the parent of a training script, which keeps what the script's hooks report and what the machine
// does meanwhile, and outlives it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/base/run_directory.h"
#include "stoker/base/status.h"

namespace stoker::watch {

struct RecordOptions {
  std::string name;                          // of the run; "": the script's
  std::filesystem::path root = runs_root();  // where the run's folder is made
  std::filesystem::path package;             // holds the stoker Python package; "": the trainee gets no hooks
  bool accelerate = false;                   // ask the hooks to put Stoker's loader in place of torch's
  bool stdout_to_stderr = false;             // our stdout is kept for something else
};

struct RecordedRun {
  std::filesystem::path run;
  int exit_code = 0;  // what the trainee's end means to a shell: its code, or 128 + n after signal n
  Json json;          // run.json as it stands now
};

// Runs `command` (looked up in PATH) with hooks, records it into a new run folder, and returns after it has ended.
// Its stdin, stdout and stderr are ours. SIGTERM and SIGHUP are passed on to it, SIGINT is left to it alone.
//
// Blocks:   until the command ends. Call it from a process that has no other children and one thread: SIGCHLD and the
//           signals above are taken while it runs.
// Crash:    killed at any moment, it leaves a run that recover_run() completes; the trainee trains on.
// Errors:   kNotFound (the command; nothing is left behind), kIo, kNoSpace.
Result<RecordedRun> record(const std::vector<std::string>& command, const RecordOptions& options);

// The same for a process that already runs (a notebook's kernel). Calls `ready` with the run's folder and the ring's
// path once events are taken; returns when `pid` has ended or on SIGTERM, SIGHUP or SIGINT.
Result<RecordedRun> record_process(int pid, const RecordOptions& options,
                                   const std::function<void(const std::filesystem::path&, const std::string&)>& ready);

// Completes a run whose recorder died: what the ring still holds is added to the trace, the outcome becomes "lost", and
// the ring's file is removed, unless the trainee still trains: then the events so far are added and nothing else.
// True when it changed something. A run that ended properly, or that is being recorded, is left alone.
// Errors: kNotFound, kCorrupt (run.json), kIo, kNoSpace.
Result<bool> recover_run(const std::filesystem::path& run);

}  // namespace stoker::watch
