#include "base/file_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/text.h"

namespace stoker {
namespace {

// Descriptors that hold a lock. A forked child (a DataLoader's worker) inherits them, and with them the lock, which
// would outlive a killed parent for as long as the orphan runs: the child closes its copies at once.
struct Held {
  std::mutex mutex;
  std::vector<int> descriptors;
};

Held& held() {
  static auto* all = new Held;  // never destroyed: a fork may come as late as it likes
  return *all;
}

void close_in_child() {
  for (const int fd : held().descriptors) ::close(fd);
  held().descriptors.clear();
  held().mutex.unlock();
}

void remember(int fd) {
  static const int registered =
      ::pthread_atfork([] { held().mutex.lock(); }, [] { held().mutex.unlock(); }, &close_in_child);
  (void)registered;
  const std::lock_guard lock(held().mutex);
  held().descriptors.push_back(fd);
}

// False in a child, where the descriptor is closed already.
bool forget(int fd) {
  const std::lock_guard lock(held().mutex);
  auto& all = held().descriptors;
  const auto it = std::find(all.begin(), all.end(), fd);
  if (it == all.end()) return false;
  all.erase(it);
  return true;
}

class FlockedFile final : public LockedFile {
 public:
  FlockedFile(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) { remember(fd_); }
  ~FlockedFile() override {
    if (forget(fd_)) ::close(fd_);
  }
  FlockedFile(const FlockedFile&) = delete;
  FlockedFile& operator=(const FlockedFile&) = delete;

  Result<std::string> read() override {
    std::array<char, 4096> bytes{};
    const ssize_t got = ::pread(fd_, bytes.data(), bytes.size(), 0);
    if (got < 0) return errno_error(errno, "cannot read " + printable(path_.native()));
    return std::string(bytes.data(), static_cast<std::size_t>(got));
  }

  Status write(std::string_view bytes) override {
    if (::ftruncate(fd_, 0) != 0 ||
        ::pwrite(fd_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      return errno_error(errno, "cannot write " + printable(path_.native()));
    }
    return {};
  }

 private:
  const int fd_;
  const std::filesystem::path path_;
};

}  // namespace

Result<std::unique_ptr<LockedFile>> lock_file(const std::filesystem::path& path) {
  const std::string shown = printable(path.native());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return errno_error(errno, "cannot open " + shown);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return std::unique_ptr<LockedFile>(std::make_unique<FlockedFile>(fd, path));
  const int reason = errno;
  ::close(fd);
  if (reason == EWOULDBLOCK) return Error{ErrorCode::kInUse, shown + " is locked by another process"};
  Error error = errno_error(reason, "cannot lock " + shown);
  if (reason == ENOSYS || reason == EOPNOTSUPP || reason == ENOLCK) error.code = ErrorCode::kUnsupported;
  return error;
}

}  // namespace stoker
