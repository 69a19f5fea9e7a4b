// A folder is copied file by file, several at once: on a slow mount the time goes into round trips, not bytes.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "feed/stage/bytes.h"
#include "feed/stage/target.h"
#include "stoker/base/threads.h"

namespace stoker::feed {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopyBlock = std::size_t{1} << 18;

struct Entry {
  std::string name;  // relative to the folder
  fs::file_type type = fs::file_type::none;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
};

fs::file_type type_of(mode_t mode) {
  if (S_ISREG(mode)) return fs::file_type::regular;
  if (S_ISDIR(mode)) return fs::file_type::directory;
  return S_ISLNK(mode) ? fs::file_type::symlink : fs::file_type::unknown;
}

Result<std::vector<Entry>> walk(const fs::path& source) {
  std::vector<Entry> entries;
  std::error_code error;
  fs::recursive_directory_iterator it(source, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    // What an earlier stage into this folder left to itself is not part of the data.
    if (it.depth() == 0 && it->path().filename().native().rfind(kStagePrefix, 0) == 0) {
      it.disable_recursion_pending();
      continue;
    }
    struct ::stat info {};
    if (::lstat(it->path().c_str(), &info) != 0)
      return errno_error(errno, "cannot look at " + printable(it->path().native()));
    const auto size = S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
    entries.push_back({it->path().lexically_relative(source), type_of(info.st_mode), size,
                       std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec});
  }
  if (error) return errno_error(error.value(), "cannot list " + printable(source.native()));
  return entries;
}

class Copier {
 public:
  Copier(const fs::path& source, Target& target, Work& work) : source_(source), target_(target), work_(work) {}

  Status entry(const Entry& entry) {
    if (work_.stop_asked()) return cancelled_error();
    switch (entry.type) {
      case fs::file_type::directory:
        return target_.add_directory(entry.name);
      case fs::file_type::regular:
        return file(entry);
      case fs::file_type::symlink:
        return link(entry);
      default:
        ++work_.skipped;
        if (work_.notice)
          work_.notice(Severity::kWarning, "skipped (a pipe, socket or device): " + printable(entry.name));
        return {};
    }
  }

 private:
  // Relative links inside the folder stay links; others become what they point to, as the copy has no such place.
  Status link(const Entry& entry) {
    std::error_code error;
    const fs::path end = fs::read_symlink(source_ / entry.name, error);
    const fs::path inside = (fs::path(entry.name).parent_path() / end).lexically_normal();
    if (!error && end.is_relative() && *inside.begin() != "..") return target_.add_symlink(entry.name, end);
    if (fs::is_regular_file(source_ / entry.name, error)) return file(entry);
    ++work_.skipped;
    if (work_.notice) {
      work_.notice(Severity::kWarning,
                   "skipped (a link out of the folder, and not to a file): " + printable(entry.name));
    }
    return {};
  }

  Status file(const Entry& entry) {
    const fs::path path = source_ / entry.name;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno_error(errno, "cannot open " + printable(path.native()));
    struct ::stat info {};
    Status status =
        ::fstat(fd, &info) == 0 ? Status() : errno_error(errno, "cannot look at " + printable(path.native()));
    if (status) status = copy(fd, entry.name, info);
    ::close(fd);
    return status;
  }

  Status copy(int fd, const std::string& name, const struct ::stat& info) {
    auto out = target_.add_file(name, (info.st_mode & 0111) != 0);
    if (!out) return out.error();
    std::string block(std::min<std::size_t>(kCopyBlock, static_cast<std::size_t>(info.st_size) + 1), '\0');
    std::uint64_t size = 0;
    for (;;) {
      const ssize_t got = ::read(fd, block.data(), block.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error(errno, "cannot read " + printable((source_ / name).native()));
      if (got == 0) break;
      if (work_.stop_asked()) return cancelled_error();
      STOKER_TRY(out->write(block.data(), static_cast<std::size_t>(got)));
      size += static_cast<std::uint64_t>(got);
      work_.advance(static_cast<std::uint64_t>(got), name);
    }
    if (size != static_cast<std::uint64_t>(info.st_size)) {
      return Error{ErrorCode::kIo,
                   fmt::format("{} gave {} bytes where {} were listed", printable((source_ / name).native()), size,
                               info.st_size),
                   "it changed while it was copied, or the mount lost it; stage again"};
    }
    STOKER_TRY(out->close(info.st_mtim.tv_sec));
    target_.count_file(size);
    return {};
  }

  const fs::path& source_;
  Target& target_;
  Work& work_;
};

}  // namespace

Result<Need> need_of_folder(const fs::path& source) {
  const auto entries = walk(source);
  if (!entries) return entries.error();
  Need need{0, 0, true};
  for (const Entry& entry : *entries) {
    need.bytes += entry.size;
    need.newest_ns = std::max(need.newest_ns, entry.modified_ns);
    need.files += entry.type == fs::file_type::regular ? 1 : 0;
  }
  return need;
}

Status copy_folder(const fs::path& source, Target& target, Work& work) {
  const auto entries = walk(source);
  if (!entries) return entries.error();
  Copier copier(source, target, work);
  return for_each_parallel(entries->size(), work.threads, [&](std::size_t i) { return copier.entry((*entries)[i]); });
}

}  // namespace stoker::feed
