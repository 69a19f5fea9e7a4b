// The trainee as a child process, and the signals that its parent takes meanwhile.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "stoker/base/status.h"

namespace stoker::watch {

// While it lives, SIGCHLD, SIGTERM, SIGHUP and SIGINT are blocked in this thread and can be waited for; no handler is
// installed. Children are started with the mask as it was before.
class SignalGate {
 public:
  // Errors: kIo.
  static Result<SignalGate> open();
  SignalGate(SignalGate&& other) noexcept;
  SignalGate& operator=(SignalGate&&) = delete;
  ~SignalGate();

  // The next signal, or 0 when `timeout` has passed.
  int wait(std::chrono::milliseconds timeout);
  const sigset_t& mask_before() const { return before_; }

 private:
  SignalGate(int fd, const sigset_t& before) : fd_(fd), before_(before) {}
  int fd_;
  sigset_t before_;
};

// Starts `command`, looked up in PATH, with our stdin, stdout, stderr, folder and process group. The environment is
// ours with `changes` ("NAME=value") laid over it. Errors: kNotFound, kIo.
Result<pid_t> start_trainee(const std::vector<std::string>& command, const std::vector<std::string>& changes,
                            const SignalGate& gate, bool stdout_to_stderr);

// What PYTHONPATH must be for `package`'s hooks to be loaded, as "PYTHONPATH=…".
std::string python_path_for(const std::string& package);

}  // namespace stoker::watch
