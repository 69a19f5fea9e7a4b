#include "save/store/owner.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "stoker/base/json.h"
#include "stoker/base/text.h"

namespace stoker::save {
namespace {

std::string this_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

struct Owner {
  int pid = 0;  // 0: nobody
  std::string host;
  std::string since;
};

Owner parse(const std::string& text) {
  const auto json = Json::parse(text);
  if (!json) return {};
  return {static_cast<int>((*json)["pid"].as_int()), printable((*json)["host"].as_string()),
          printable((*json)["since_utc"].as_string())};
}

std::string own_name(const Clock& clock) {
  return Json::object({{"pid", ::getpid()}, {"host", this_host()}, {"since_utc", utc_iso(clock.wall())}}).dump() + "\n";
}

bool is_dead(const Owner& owner) { return owner.host == this_host() && ::kill(owner.pid, 0) != 0 && errno == ESRCH; }

Error in_use(const std::filesystem::path& dir, const Owner& owner) {
  const std::string shown = printable(dir.native());
  if (owner.pid == 0) return {ErrorCode::kInUse, shown + " is being written by another process"};
  return {ErrorCode::kInUse,
          fmt::format("{} is being written by process {} on {} since {}", shown, owner.pid, owner.host, owner.since),
          owner.pid == ::getpid() && owner.host == this_host()
              ? "that is this process: close() the one that it has open, in a notebook that of an earlier cell"
              : "wait for it, stop it, or give this run another directory; reading works beside it"};
}

void tell_taken_over(const std::filesystem::path& dir, const Owner& owner, const Notice& notice) {
  if (owner.pid == 0 || !notice) return;
  notice(Severity::kInfo, fmt::format("{}: took over from process {} on {}, which ended without closing it",
                                      printable(dir.native()), owner.pid, owner.host));
}

}  // namespace

OwnerLock::OwnerLock(FileSystem& files, std::filesystem::path path, std::unique_ptr<LockedFile> lock)
    : files_(files), path_(std::move(path)), lock_(std::move(lock)), pid_(::getpid()) {}

OwnerLock::~OwnerLock() {
  if (::getpid() != pid_) return;
  if (lock_ != nullptr) {
    (void)lock_->write("");
  } else {
    (void)files_.remove(path_);
  }
}

Result<std::unique_ptr<OwnerLock>> OwnerLock::take(FileSystem& files, const std::filesystem::path& dir,
                                                   const Clock& clock, const Notice& notice) {
  const auto path = dir / kLockName;
  auto lock = files.lock(path);
  if (!lock && lock.code() != ErrorCode::kInUse && lock.code() != ErrorCode::kUnsupported) return lock.error();
  const auto text = files.read(path);
  const Owner owner = text ? parse(*text) : Owner{};
  if (lock.code() == ErrorCode::kInUse) return in_use(dir, owner);
  if (!lock && owner.pid != 0 && !is_dead(owner)) return in_use(dir, owner);
  tell_taken_over(dir, owner, notice);
  if (lock) {
    STOKER_TRY((*lock)->write(own_name(clock)));
    return std::unique_ptr<OwnerLock>(new OwnerLock(files, path, *std::move(lock)));
  }
  STOKER_TRY(write_file_durably(files, path, own_name(clock)));
  return std::unique_ptr<OwnerLock>(new OwnerLock(files, path, nullptr));
}

}  // namespace stoker::save
