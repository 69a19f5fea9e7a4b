#include "stoker/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "base/file_lock.h"
#include "stoker/base/text.h"

namespace stoker {
namespace {

constexpr std::size_t kDirectAlignment = 4096;

std::string shown(const std::filesystem::path& path) { return printable(path.native()); }

class RealFile final : public WritableFile {
 public:
  RealFile(int fd, std::filesystem::path path, bool direct) : fd_(fd), path_(std::move(path)), direct_(direct) {}
  ~RealFile() override {
    if (fd_ >= 0) ::close(fd_);
  }
  RealFile(const RealFile&) = delete;
  RealFile& operator=(const RealFile&) = delete;

  Status append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      if (direct_ && !aligned(bytes)) STOKER_TRY(leave_direct());
      const ssize_t written = ::write(fd_, bytes.data(), writable_now(bytes.size()));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno == EINVAL && direct_) {
        STOKER_TRY(leave_direct());
        continue;
      }
      if (written <= 0) return errno_error(written < 0 ? errno : ENOSPC, "cannot write " + shown(path_));
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }

  Status sync() override {
    if (::fdatasync(fd_) != 0) return errno_error(errno, "cannot sync " + shown(path_));
    return {};
  }

  Status close() override {
    const int fd = std::exchange(fd_, -1);
    if (fd >= 0 && ::close(fd) != 0) return errno_error(errno, "cannot close " + shown(path_));
    return {};
  }

 private:
  static bool aligned(std::span<const std::byte> bytes) {
    return reinterpret_cast<std::uintptr_t>(bytes.data()) % kDirectAlignment == 0 && bytes.size() >= kDirectAlignment;
  }
  std::size_t writable_now(std::size_t size) const { return direct_ ? size - size % kDirectAlignment : size; }

  // A tail that is no whole block, or a file system that refuses O_DIRECT, is written through the page cache.
  Status leave_direct() {
    const int flags = ::fcntl(fd_, F_GETFL);
    if (flags < 0 || ::fcntl(fd_, F_SETFL, flags & ~O_DIRECT) != 0) {
      return errno_error(errno, "cannot leave direct mode on " + shown(path_));
    }
    direct_ = false;
    return {};
  }

  int fd_;
  const std::filesystem::path path_;
  bool direct_;
};

class RealReader final : public ReadableFile {
 public:
  RealReader(int fd, std::uint64_t size_bytes, std::filesystem::path path)
      : fd_(fd), size_bytes_(size_bytes), path_(std::move(path)) {}
  ~RealReader() override { ::close(fd_); }
  RealReader(const RealReader&) = delete;
  RealReader& operator=(const RealReader&) = delete;

  std::uint64_t size_bytes() const override { return size_bytes_; }

  Status read_at(std::uint64_t offset, std::span<std::byte> into) override {
    while (!into.empty()) {
      const ssize_t got = ::pread(fd_, into.data(), into.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error(errno, fmt::format("cannot read {} at offset {}", shown(path_), offset));
      if (got == 0) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("{} ends at offset {}, {} bytes early", shown(path_), offset, into.size())};
      }
      into = into.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return {};
  }

 private:
  const int fd_;
  const std::uint64_t size_bytes_;
  const std::filesystem::path path_;
};

Status from_error_code(const std::error_code& error, const std::string& what) {
  if (!error) return {};
  return errno_error(error.value(), what);
}

class RealFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> create(const std::filesystem::path& path, WriteMode mode) override {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    int fd = -1;
    bool direct = mode == WriteMode::kDirect;
    if (direct) fd = ::open(path.c_str(), flags | O_DIRECT, 0666);
    if (fd < 0) {
      direct = false;
      fd = ::open(path.c_str(), flags, 0666);
    }
    if (fd < 0) return errno_error(errno, "cannot create " + shown(path));
    return std::unique_ptr<WritableFile>(std::make_unique<RealFile>(fd, path, direct));
  }

  Status rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    std::error_code error;
    std::filesystem::rename(from, to, error);
    return from_error_code(error, fmt::format("cannot rename {} to {}", shown(from), shown(to)));
  }

  Status remove(const std::filesystem::path& path) override {
    if (::unlink(path.c_str()) != 0) return errno_error(errno, "cannot remove " + shown(path));
    return {};
  }

  Status remove_all(const std::filesystem::path& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    return from_error_code(error, "cannot remove " + shown(path));
  }

  Status create_directories(const std::filesystem::path& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    return from_error_code(error, "cannot make the directory " + shown(path));
  }

  Status sync_directory(const std::filesystem::path& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno_error(errno, "cannot open the directory " + shown(path));
    const int failed = ::fsync(fd) != 0 ? errno : 0;
    ::close(fd);
    // Some FUSE mounts have no fsync for directories; there is then nothing more that could be done.
    if (failed != 0 && failed != EINVAL && failed != ENOSYS && failed != ENOTSUP) {
      return errno_error(failed, "cannot sync the directory " + shown(path));
    }
    return {};
  }

  Result<std::vector<FileInfo>> list(const std::filesystem::path& path) override {
    std::error_code error;
    std::vector<FileInfo> entries;
    std::filesystem::directory_iterator it(path, error);
    for (; !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
      std::error_code ignored;  // an entry that vanished between the two calls has size 0
      FileInfo info;
      info.name = it->path().filename().native();
      info.is_directory = it->is_directory(ignored);
      const auto size = info.is_directory ? 0 : it->file_size(ignored);
      info.size_bytes = ignored ? 0 : size;
      entries.push_back(std::move(info));
    }
    if (error) return errno_error(error.value(), "cannot list " + shown(path));
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return entries;
  }

  Result<FileInfo> stat(const std::filesystem::path& path) override {
    struct ::stat info {};
    if (::stat(path.c_str(), &info) != 0) return errno_error(errno, "cannot look at " + shown(path));
    return FileInfo{path.filename().native(), static_cast<std::uint64_t>(info.st_size), S_ISDIR(info.st_mode)};
  }

  Result<std::string> read(const std::filesystem::path& path, std::size_t max_bytes) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno_error(errno, "cannot open " + shown(path));
    auto bytes = read_all(fd, path, max_bytes);
    ::close(fd);
    return bytes;
  }

  Result<std::unique_ptr<ReadableFile>> open(const std::filesystem::path& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno_error(errno, "cannot open " + shown(path));
    struct ::stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
      ::close(fd);
      return Error{ErrorCode::kIo, shown(path) + " is not a regular file"};
    }
    const auto size_bytes = static_cast<std::uint64_t>(info.st_size);
    return std::unique_ptr<ReadableFile>(std::make_unique<RealReader>(fd, size_bytes, path));
  }

  Status link(const std::filesystem::path& from, const std::filesystem::path& to) override {
    if (::link(from.c_str(), to.c_str()) == 0) return {};
    const int error = errno;
    Error failed = errno_error(error, fmt::format("cannot link {} to {}", shown(from), shown(to)));
    if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS || error == EMLINK || error == EXDEV)
      failed.code = ErrorCode::kUnsupported;
    return failed;
  }

  Result<std::unique_ptr<LockedFile>> lock(const std::filesystem::path& path) override { return lock_file(path); }

  Result<std::uint64_t> free_bytes(const std::filesystem::path& path) override {
    std::filesystem::path existing = std::filesystem::absolute(path);
    std::error_code error;
    while (!std::filesystem::exists(existing, error) && existing.has_relative_path()) existing = existing.parent_path();
    struct statvfs info {};
    if (::statvfs(existing.c_str(), &info) != 0)
      return errno_error(errno, "cannot read the free space of " + shown(existing));
    return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  }

 private:
  static Result<std::string> read_all(int fd, const std::filesystem::path& path, std::size_t max_bytes) {
    std::string bytes;
    std::size_t used = 0;
    for (;;) {
      if (used == bytes.size())
        bytes.resize(std::min(max_bytes + 1, std::max<std::size_t>(bytes.size() * 2, 1U << 14)));
      const ssize_t got = ::read(fd, bytes.data() + used, bytes.size() - used);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error(errno, "cannot read " + shown(path));
      if (got == 0) break;
      used += static_cast<std::size_t>(got);
      if (used > max_bytes) {
        return Error{ErrorCode::kBadInput,
                     fmt::format("{} is larger than the limit of {} bytes", shown(path), max_bytes)};
      }
    }
    bytes.resize(used);
    return bytes;
  }
};

}  // namespace

FileSystem& FileSystem::real() {
  static RealFileSystem fs;
  return fs;
}

Status write_file_durably(FileSystem& fs, const std::filesystem::path& path, std::string_view bytes) {
  static std::atomic<unsigned> serial{0};
  const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::filesystem::path temporary =
      directory / fmt::format(".{}.{}-{}.tmp", path.filename().native(), ::getpid(), serial++);
  const auto write = [&]() -> Status {
    auto file = fs.create(temporary);
    if (!file) return file.error();
    STOKER_TRY((*file)->append(std::as_bytes(std::span(bytes))));
    STOKER_TRY((*file)->sync());
    STOKER_TRY((*file)->close());
    return fs.rename(temporary, path);
  };
  if (Status status = write(); !status) {
    (void)fs.remove(temporary);
    return status;
  }
  return fs.sync_directory(directory);
}

std::filesystem::path cache_directory() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
  };
  if (const std::string own = variable("STOKER_CACHE"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return std::filesystem::path(xdg) / "stoker";
  if (const std::string home = variable("HOME"); !home.empty())
    return std::filesystem::path(home) / ".cache" / "stoker";
  return fmt::format("/tmp/stoker-{}", ::getuid());
}

}  // namespace stoker
