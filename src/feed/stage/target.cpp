#include "feed/stage/target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "feed/stage/bytes.h"
#include "stoker/base/files.h"
#include "stoker/base/units.h"

namespace stoker::feed {
namespace {

Error refused(std::string_view name, const std::string& why) {
  return {ErrorCode::kBadInput, fmt::format("member '{}' {}; refused, and nothing was kept", printable_name(name), why),
          "the archive is hostile or badly made; list it with `tar -tvf` or `unzip -l` before you trust it"};
}

// A file where another member wants a folder, and the like.
Error clash(int error_number, std::string_view name) {
  if (error_number == ENOTDIR || error_number == EISDIR || error_number == EEXIST) {
    return {ErrorCode::kCorrupt, fmt::format("member '{}' is both a file and a folder", printable_name(name))};
  }
  return errno_error(error_number, fmt::format("cannot write member '{}'", printable_name(name)));
}

}  // namespace

Result<std::string> safe_member_name(std::string_view name) {
  if (name.find('\0') != std::string_view::npos) return refused(name, "has a NUL in its name");
  if (!name.empty() && name.front() == '/') return refused(name, "has an absolute path");
  std::string safe;
  std::string_view rest = name;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    if (part.empty() || part == ".") continue;
    if (part == "..") return refused(name, "would land outside the destination");
    if (safe.empty() && part.substr(0, kStagePrefix.size()) == kStagePrefix) {
      return refused(name, "has a name that stage keeps for itself");
    }
    safe += (safe.empty() ? "" : "/") + std::string(part);
  }
  return safe;
}

bool is_mac_litter(std::string_view name) {
  return name.substr(0, 9) == "__MACOSX/" || name.find("/__MACOSX/") != std::string_view::npos;
}

MemberFile::~MemberFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status MemberFile::write(const void* bytes, std::size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(fd_, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      return errno_error(written < 0 ? errno : ENOSPC, fmt::format("cannot write member '{}'", printable_name(name_)));
    }
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return {};
}

Status MemberFile::close(std::int64_t modified_seconds) {
  if (modified_seconds > 0) {
    const std::array<timespec, 2> times = {timespec{0, UTIME_OMIT}, timespec{modified_seconds, 0}};
    ::futimens(fd_, times.data());  // a date is a courtesy
  }
  if (::close(std::exchange(fd_, -1)) != 0) {
    return errno_error(errno, fmt::format("cannot close member '{}'", printable_name(name_)));
  }
  return {};
}

Status Target::add_directory(const std::string& name) {
  std::error_code error;
  std::filesystem::create_directories(folder_ / name, error);
  if (error) return clash(error.value(), name);
  return {};
}

Result<MemberFile> Target::add_file(const std::string& name, bool executable) {
  if (name.empty()) return refused(name, "is a file without a name");
  const std::filesystem::path path = folder_ / name;
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
  const mode_t mode = executable ? 0777 : 0666;
  int fd = ::open(path.c_str(), flags, mode);
  if (fd < 0 && errno == ENOENT) {
    STOKER_TRY(add_directory(std::filesystem::path(name).parent_path()));
    fd = ::open(path.c_str(), flags, mode);
  }
  if (fd < 0) return clash(errno, name);
  return MemberFile(fd, name);
}

Status Target::check_room(std::uint64_t declared_bytes, const std::string& name) const {
  constexpr std::uint64_t kSmall = std::uint64_t{16} << 20;
  if (declared_bytes < kSmall) return {};
  const auto free = FileSystem::real().free_bytes(folder_);
  if (!free || declared_bytes <= *free) return {};
  return Error{ErrorCode::kNoSpace, fmt::format("member '{}' declares {}, and {} are free", printable_name(name),
                                                format_size(declared_bytes), format_size(*free))};
}

Status Target::add_symlink(const std::string& name, const std::string& points_to) {
  if (name.empty() || points_to.empty()) return refused(name, "is a link without a name or an end");
  if (points_to.front() == '/')
    return refused(name, "links to " + printable_name(points_to) + ", outside the destination");
  const MutexLock lock(mutex_);
  symlinks_.emplace_back(name, points_to);
  return {};
}

Status Target::add_hard_link(const std::string& name, const std::string& existing) {
  struct ::stat info {};
  if (::lstat((folder_ / existing).c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return refused(name, "is a hard link to '" + printable_name(existing) + "', which is no member before it");
  }
  STOKER_TRY(add_directory(std::filesystem::path(name).parent_path()));
  ::unlink((folder_ / name).c_str());
  if (::link((folder_ / existing).c_str(), (folder_ / name).c_str()) != 0) return clash(errno, name);
  count_file(static_cast<std::uint64_t>(info.st_size));
  return {};
}

void Target::drop(const std::string& name) { ::unlink((folder_ / name).c_str()); }

Status Target::make_symlinks() {
  std::set<std::string> names;
  for (const auto& [name, points_to] : symlinks_) names.insert(name);
  for (const auto& [name, points_to] : symlinks_) {
    const std::filesystem::path parent = std::filesystem::path(name).parent_path();
    for (std::filesystem::path above = parent; !above.empty(); above = above.parent_path()) {
      if (names.count(above.native()) != 0) return refused(name, "lies below a link");
    }
    STOKER_TRY(add_directory(parent));
    if (::symlink(points_to.c_str(), (folder_ / name).c_str()) != 0) return clash(errno, name);
  }
  return {};
}

Status Target::finish() {
  const MutexLock lock(mutex_);
  if (symlinks_.empty()) return {};
  STOKER_TRY(make_symlinks());
  std::error_code error;
  const std::string root = std::filesystem::canonical(folder_, error).native() + "/";
  for (const auto& [name, points_to] : symlinks_) {
    // Through the folder, not through the link's own name: a link to nothing must not hide where it would lead.
    const auto there = folder_ / std::filesystem::path(name).parent_path() / points_to;
    const std::string end = std::filesystem::weakly_canonical(there, error).native() + "/";
    if (error || end.compare(0, root.size(), root) != 0) {
      return refused(name, "links to " + printable_name(points_to) + ", outside the destination");
    }
  }
  return {};
}

}  // namespace stoker::feed
