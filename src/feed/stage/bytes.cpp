#include "feed/stage/bytes.h"

#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

namespace stoker::feed {

Result<std::string> read_exactly(int fd, std::uint64_t offset, std::uint64_t size, const std::string& shown) {
  std::string bytes(size, '\0');
  std::size_t used = 0;
  while (used < bytes.size()) {
    const ssize_t got = ::pread(fd, bytes.data() + used, bytes.size() - used, static_cast<off_t>(offset + used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, "cannot read " + shown);
    if (got == 0) {
      return Error{ErrorCode::kCorrupt, fmt::format("{} ends at {} where {} bytes more were expected", shown,
                                                    offset + used, bytes.size() - used)};
    }
    used += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace stoker::feed
