#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "stoker/watch/explain.h"

namespace stoker::watch {
namespace {

constexpr std::size_t kHead = kMaxLog / 4;
constexpr std::size_t kTail = kMaxLog - kHead;
constexpr std::size_t kBlock = std::size_t{1} << 16;

}  // namespace

// An error stands near the end, and what led to it near the beginning.
Result<LogText> read_log(int fd) {
  std::string head;
  std::string tail;
  std::string block(kBlock, '\0');
  std::size_t left_out = 0;
  for (;;) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, "cannot read the log");
    if (got == 0) break;
    std::string_view bytes(block.data(), static_cast<std::size_t>(got));
    const std::size_t to_head = std::min(bytes.size(), kHead - head.size());
    head += bytes.substr(0, to_head);
    tail += bytes.substr(to_head);
    if (tail.size() > 2 * kTail) {
      left_out += tail.size() - kTail;
      tail.erase(0, tail.size() - kTail);
    }
  }
  if (tail.size() > kTail) {
    left_out += tail.size() - kTail;
    tail.erase(0, tail.size() - kTail);
  }
  if (left_out > 0) head += fmt::format("\n[{} bytes left out]\n", left_out);
  return LogText{head + tail, left_out};
}

}  // namespace stoker::watch
