// Child processes by posix_spawn: in a process with threads, or somebody else's CUDA context, fork is not ours to call.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "stoker/base/status.h"

namespace stoker {

struct ProcessOutput {
  int exit_code = 0;  // 128 + n after a death by signal n
  std::string out;
  std::string err;
};

// Runs `argv` (looked up in PATH), closes its stdin, and gathers at most `max_bytes` of each stream.
// Blocks until it ends or `timeout` has passed; then it is killed and the answer is kIo.
Result<ProcessOutput> run_process(const std::vector<std::string>& argv, std::chrono::milliseconds timeout,
                                  std::size_t max_bytes = std::size_t{1} << 20);

// The directory of the running executable or, inside Python, of the extension module.
std::string self_directory();

}  // namespace stoker
