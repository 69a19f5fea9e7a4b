#include "watch/recorder/child.h"

#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/text.h"

extern char** environ;

namespace stoker::watch {
namespace {

sigset_t taken_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGTERM, SIGHUP, SIGINT}) sigaddset(&set, signal);
  return set;
}

std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> out = changes;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    const bool changed = std::any_of(changes.begin(), changes.end(),
                                     [&](const std::string& change) { return change.starts_with(name); });
    if (!changed) out.push_back(text);
  }
  return out;
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

}  // namespace

Result<SignalGate> SignalGate::open() {
  const sigset_t taken = taken_signals();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &taken, &before);
  const int fd = ::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return errno_error(errno, "cannot watch signals");
  }
  return SignalGate(fd, before);
}

SignalGate::SignalGate(SignalGate&& other) noexcept : fd_(std::exchange(other.fd_, -1)), before_(other.before_) {}

SignalGate::~SignalGate() {
  if (fd_ < 0) return;
  while (wait(std::chrono::milliseconds(0)) != 0) {
  }  // what is pending was meant for the recording
  ::close(fd_);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int SignalGate::wait(std::chrono::milliseconds timeout) {
  pollfd waiting{fd_, POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(timeout.count())) <= 0) return 0;
  signalfd_siginfo info{};
  return ::read(fd_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

Result<pid_t> start_trainee(const std::vector<std::string>& command, const std::vector<std::string>& changes,
                            const SignalGate& gate, bool stdout_to_stderr) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &gate.mask_before());
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (stdout_to_stderr) posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  const std::vector<std::string> environment = environment_with(changes);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, command[0].c_str(), &actions, &attributes, pointers(command).data(),
                                    pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed == 0) return child;
  Error error = errno_error(failed, fmt::format("cannot start '{}'", printable(command[0])));
  if (error.code == ErrorCode::kNotFound)
    error.hint = "name a program in PATH or a path, as in `stoker run -- python train.py`";
  return error;
}

std::string python_path_for(const std::string& package) {
  const char* before = std::getenv("PYTHONPATH");
  std::string out = "PYTHONPATH=" + package + "/stoker/_inject";
  if (before != nullptr && *before != '\0') out += std::string(":") + before;
  return out;
}

}  // namespace stoker::watch
