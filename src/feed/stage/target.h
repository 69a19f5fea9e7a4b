// The hidden folder that a source is unpacked into. Private to the room.
//
// 1. Every name is checked: no absolute path, no "..", nothing that is not below the folder.
// 2. Links are made last, when every file has been written: no write can go through one.
// 3. A link whose end lies outside the folder, after all links were made, is refused.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "feed/stage/sniff.h"
#include "stoker/base/mutex.h"
#include "stoker/base/notice.h"
#include "stoker/base/status.h"

namespace stoker::feed {

inline constexpr std::string_view kStagePrefix = ".stoker-stage";  // of every name that stage keeps for itself

// Errors: kBadInput for a name that is not below the folder it is unpacked into. "./a//b/" becomes "a/b"; "" is the
// folder itself.
Result<std::string> safe_member_name(std::string_view name);

// Mac resource forks ("__MACOSX/._leaf.jpg") are no data, and the folder would look like a class.
bool is_mac_litter(std::string_view name);

// One file being written.
class MemberFile {
 public:
  MemberFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  ~MemberFile();
  MemberFile(MemberFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)) {}
  MemberFile& operator=(MemberFile&&) = delete;

  // Errors: kNoSpace, kIo.
  Status write(const void* bytes, std::size_t size);
  // Seconds since 1970, or none with `seconds` ≤ 0.
  Status close(std::int64_t modified_seconds);

 private:
  int fd_;
  std::string name_;
};

// Threads: any number may add members; finish() comes after all of them.
class Target {
 public:
  explicit Target(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // `name` is one that safe_member_name() gave.
  Status add_directory(const std::string& name);
  Result<MemberFile> add_file(const std::string& name, bool executable);
  Status add_symlink(const std::string& name, const std::string& points_to);
  // A second name of the file `existing`, which must be a member already.
  Status add_hard_link(const std::string& name, const std::string& existing);
  // kNoSpace when a member declares more than the disk has left; small ones are not looked up.
  Status check_room(std::uint64_t declared_bytes, const std::string& name) const;
  // Removes a file that was not completed.
  void drop(const std::string& name);

  // Makes the links and looks where they end.
  Status finish();

  const std::filesystem::path& folder() const { return folder_; }
  void count_file(std::uint64_t bytes) {
    files_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  std::uint64_t files() const { return files_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Status make_symlinks() STOKER_REQUIRES(mutex_);

  const std::filesystem::path folder_;

  std::atomic<std::uint64_t> files_{0};
  std::atomic<std::uint64_t> bytes_{0};

  Mutex mutex_;
  std::vector<std::pair<std::string, std::string>> symlinks_ STOKER_GUARDED_BY(mutex_);
};

// What every unpacker is given beside the target.
struct Work {
  std::string source;  // for messages
  int threads = 1;
  std::function<bool()> cancelled;
  Notice notice;
  ProgressSink progress;
  std::uint64_t total = 0;  // of the progress, in the unit of advance()
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::uint64_t> skipped{0};

  bool stop_asked() const { return cancelled && cancelled(); }
  void advance(std::uint64_t units, const std::string& name) {
    const std::uint64_t now = done.fetch_add(units, std::memory_order_relaxed) + units;
    if (progress) progress({now, total, name});
  }
};
inline Error cancelled_error() { return {ErrorCode::kCancelled, "stopped on request; nothing was left behind"}; }

Status unzip(const std::filesystem::path& archive, Target& target, Work& work);
// Every kind but zip and folder.
Status untar(const std::filesystem::path& archive, Packing packing, Target& target, Work& work);
Status copy_folder(const std::filesystem::path& source, Target& target, Work& work);

// What unpacking will write at least, and how many files (0: not known). Reads a zip's directory or walks a folder.
struct Need {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  bool exact = false;
  std::int64_t newest_ns = 0;  // of a folder: the last change of anything in it
};
Result<Need> need_of_zip(const std::filesystem::path& archive);
Result<Need> need_of_folder(const std::filesystem::path& source);

}  // namespace stoker::feed
