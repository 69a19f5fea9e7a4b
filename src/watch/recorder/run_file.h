// A run's folder and its run.json, from the first byte to the outcome.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/ring.h"
#include "stoker/base/json.h"
#include "stoker/watch/recorder.h"

namespace stoker::watch {

// Held by the one process that writes a run's trace: its recorder, or whoever completes the run after that died. The
// kernel lets go of it when the holder ends, however it ends.
class RunLock {
 public:
  // Errors: kInUse (another holds it), kIo.
  static Result<RunLock> take(const std::filesystem::path& run);
  RunLock(RunLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  RunLock& operator=(RunLock&& other) noexcept;
  ~RunLock();

 private:
  explicit RunLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

// An event ring for a trainee: its pages are there before the trainee maps it, so that a full disk or /dev/shm is an
// error of ours now and never a SIGBUS of the trainee's.
struct RingFile {
  std::string path;
  std::shared_ptr<Ring> ring;
};
// In /dev/shm where that has room for four such rings, else in `run`. Errors: kNoSpace, kIo.
Result<RingFile> create_ring(const std::filesystem::path& run);

// run.json as a run begins, without outcome. `command` may be empty (a process that is already running).
Json first_run_json(const std::filesystem::path& run, const std::vector<std::string>& command,
                    const RecordOptions& options);

// Adds what the hooks left in hook.json: the interpreter, the exception, what became of --accelerate. `command` helps
// to say why there is nothing.
void merge_hook_report(const std::filesystem::path& run, Json& json);

// Removes the hooks' own files, once they are in run.json.
void remove_hook_files(const std::filesystem::path& run);

// The script's name without its ending, else the program's.
std::string run_name(const std::vector<std::string>& command);

}  // namespace stoker::watch
