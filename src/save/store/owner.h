// The lock on a store's directory, with its owner's name in it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "stoker/base/clock.h"
#include "stoker/base/files.h"
#include "stoker/base/notice.h"

namespace stoker::save {

constexpr std::string_view kLockName = "lock";

// Held until destroyed; the file stays, empty.
class OwnerLock {
 public:
  // Errors: kInUse naming the owner's pid, host and start, kIo. A lock whose owner has died is taken over, and `notice`
  // told. Where the file system has no locks, the owner's name alone decides.
  static Result<std::unique_ptr<OwnerLock>> take(FileSystem& files, const std::filesystem::path& dir,
                                                 const Clock& clock, const Notice& notice);
  ~OwnerLock();
  OwnerLock(const OwnerLock&) = delete;
  OwnerLock& operator=(const OwnerLock&) = delete;

 private:
  OwnerLock(FileSystem& files, std::filesystem::path path, std::unique_ptr<LockedFile> lock);

  FileSystem& files_;
  const std::filesystem::path path_;
  const std::unique_ptr<LockedFile> lock_;  // null where the file system has no locks
  const int pid_;
};

}  // namespace stoker::save
