#include "stoker/base/process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>

extern char** environ;

namespace stoker {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  static void close_end(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  bool open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
};

int exit_code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

// Takes what has arrived; false once the stream has ended.
bool take(int fd, std::string& into, std::size_t max_bytes) {
  std::array<char, 1 << 14> buffer{};
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  into.append(buffer.data(), std::min(static_cast<std::size_t>(got), max_bytes - std::min(max_bytes, into.size())));
  return true;
}

}  // namespace

Result<ProcessOutput> run_process(const std::vector<std::string>& argv, std::chrono::milliseconds timeout,
                                  std::size_t max_bytes) {
  STOKER_CHECK(!argv.empty(), "run_process needs a program");
  Pipe out;
  Pipe err;
  if (!out.open() || !err.open()) return errno_error(errno, "cannot make a pipe");

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end, 1);
  posix_spawn_file_actions_adddup2(&actions, err.write_end, 2);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return errno_error(failed, "cannot start " + argv[0]);
  Pipe::close_end(out.write_end);
  Pipe::close_end(err.write_end);

  ProcessOutput output;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::array<pollfd, 2> streams = {pollfd{out.read_end, POLLIN, 0}, pollfd{err.read_end, POLLIN, 0}};
  bool in_time = true;
  while (in_time && (streams[0].fd >= 0 || streams[1].fd >= 0)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    in_time = left.count() > 0;
    if (!in_time || ::poll(streams.data(), streams.size(), static_cast<int>(left.count())) <= 0) continue;
    if (streams[0].revents != 0 && !take(out.read_end, output.out, max_bytes)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !take(err.read_end, output.err, max_bytes)) streams[1].fd = -1;
  }
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return Error{ErrorCode::kIo, fmt::format("{} gave no answer within {} ms", argv[0], timeout.count())};
  }
  output.exit_code = exit_code_of(status);
  return output;
}

std::string self_directory() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&self_directory), &info) == 0 || info.dli_fname == nullptr) return ".";
  std::error_code error;
  // For the main program, dli_fname is argv[0], which need not be a path.
  auto file = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path named = info.dli_fname;
  if (error || named.extension() == ".so") file = std::filesystem::weakly_canonical(named, error);
  return file.parent_path().string();
}

}  // namespace stoker
