// Files, behind a seam so that tests can fill the disk, refuse a write or cut the power between two operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/status.h"

namespace stoker {

// A file open for writing. Dropping it without close() loses no bytes already written, but hides a late error.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // All of `bytes` at the current end. Errors: kNoSpace, kIo.
  virtual Status append(std::span<const std::byte> bytes) = 0;
  // fdatasync: what was appended survives power loss once the file's name does.
  virtual Status sync() = 0;
  virtual Status close() = 0;
};

// A file open for reading; stays readable when its name is removed.
// Threads: may be shared.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual std::uint64_t size_bytes() const = 0;  // when it was opened
  // Fills `into` from `offset`. Errors: kCorrupt when the file ends before that, kIo.
  virtual Status read_at(std::uint64_t offset, std::span<std::byte> into) = 0;
};

// A file that this object alone has locked: no other process, and no other object of this one. The lock goes with the
// object or with the process, whatever ends it; a forked child does not hold it.
class LockedFile {
 public:
  virtual ~LockedFile() = default;
  virtual Result<std::string> read() = 0;
  virtual Status write(std::string_view bytes) = 0;  // replaces the content; not durable
};

struct FileInfo {
  std::string name;  // within its directory
  std::uint64_t size_bytes = 0;
  bool is_directory = false;
};

enum class WriteMode {
  kBuffered,  // through the page cache
  kDirect,    // O_DIRECT where the file system has it, else buffered; callers append from aligned memory
};

// Threads: every implementation may be shared. Errors name the path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates or truncates. Errors: kNotFound (its directory), kNoSpace, kIo.
  virtual Result<std::unique_ptr<WritableFile>> create(const std::filesystem::path& path,
                                                       WriteMode mode = WriteMode::kBuffered) = 0;
  virtual Status rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  virtual Status remove(const std::filesystem::path& path) = 0;      // a file; kNotFound when absent
  virtual Status remove_all(const std::filesystem::path& path) = 0;  // ok when absent
  virtual Status create_directories(const std::filesystem::path& path) = 0;
  // fsync on the directory: names made, renamed or removed in it survive power loss.
  virtual Status sync_directory(const std::filesystem::path& path) = 0;
  // Entries but "." and "..", sorted by name.
  virtual Result<std::vector<FileInfo>> list(const std::filesystem::path& path) = 0;
  virtual Result<FileInfo> stat(const std::filesystem::path& path) = 0;
  // The whole file. Errors: kBadInput when it is larger than `max_bytes`.
  virtual Result<std::string> read(const std::filesystem::path& path,
                                   std::size_t max_bytes = std::size_t{64} << 20) = 0;
  // For reading in pieces. Errors: kNotFound, kIo.
  virtual Result<std::unique_ptr<ReadableFile>> open(const std::filesystem::path& path) = 0;
  // A second name for the same bytes. Errors: kUnsupported where the file system has none, kExists, kIo.
  virtual Status link(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  // Creates `path` if missing; does not wait. Errors: kInUse, kUnsupported where the file system has no locks, kIo.
  virtual Result<std::unique_ptr<LockedFile>> lock(const std::filesystem::path& path) = 0;
  // Bytes that this user may still write on the file system that holds `path` (or its nearest existing parent).
  virtual Result<std::uint64_t> free_bytes(const std::filesystem::path& path) = 0;

  static FileSystem& real();
};

// Replaces `path` with `bytes` so that after any crash it holds either the old bytes or the new ones, whole:
// a temporary file in the same directory, fsync, rename, fsync of the directory. On error the old file stands and the
// temporary one is gone.
Status write_file_durably(FileSystem& fs, const std::filesystem::path& path, std::string_view bytes);

// A directory for caches: $STOKER_CACHE, else $XDG_CACHE_HOME/stoker, else ~/.cache/stoker, else /tmp/stoker-<uid>.
std::filesystem::path cache_directory();

}  // namespace stoker
