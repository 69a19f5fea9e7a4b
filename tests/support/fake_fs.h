// A file system in memory that knows what is durable: it cuts the power before any operation, runs out of space, fails
// on request, and comes back as a machine does after a restart.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/files.h"
#include "stoker/base/mutex.h"

namespace stoker::testing {

class FakeFs final : public FileSystem {
 public:
  enum class Op {
    kCreate,
    kAppend,
    kSync,
    kClose,
    kRename,
    kRemove,
    kRemoveAll,
    kMakeDirectories,
    kSyncDirectory,
    kLink
  };
  // What a power cut takes of the things that no sync has confirmed.
  enum class Loss {
    kNothing,       // all of it had reached the disk by chance
    kUnsynced,      // names and bytes
    kUnsyncedData,  // bytes alone: the names are there, the files shorter
  };

  FakeFs();
  ~FakeFs() override;

  // Every operation from the `n`-th on (0: the first) fails with kIo and changes nothing.
  void cut_power_before(std::size_t n);
  // The same, from the next operation of this kind on.
  void cut_power_before(Op op);
  // The `n`-th operation alone fails.
  void fail(std::size_t n, ErrorCode code);
  // Bytes that all files together may have.
  void set_capacity(std::uint64_t bytes);
  // The machine after a restart. Locks are gone.
  std::unique_ptr<FakeFs> restart(Loss loss) const;

  // Operations that change something, so far.
  std::size_t operations() const;
  // Every path of a file or directory, sorted.
  std::vector<std::string> paths() const;
  // A file's bytes, for tests that damage them.
  std::string& bytes(const std::filesystem::path& path);

  Result<std::unique_ptr<WritableFile>> create(const std::filesystem::path& path, WriteMode mode) override;
  Status rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  Status remove(const std::filesystem::path& path) override;
  Status remove_all(const std::filesystem::path& path) override;
  Status create_directories(const std::filesystem::path& path) override;
  Status sync_directory(const std::filesystem::path& path) override;
  Result<std::vector<FileInfo>> list(const std::filesystem::path& path) override;
  Result<FileInfo> stat(const std::filesystem::path& path) override;
  Result<std::string> read(const std::filesystem::path& path, std::size_t max_bytes) override;
  Result<std::unique_ptr<ReadableFile>> open(const std::filesystem::path& path) override;
  Status link(const std::filesystem::path& from, const std::filesystem::path& to) override;
  Result<std::unique_ptr<LockedFile>> lock(const std::filesystem::path& path) override;
  Result<std::uint64_t> free_bytes(const std::filesystem::path& path) override;

  struct Node;  // a file or a directory

 private:
  friend class FakeWriter;
  Status begin(Op op, const std::string& what) STOKER_REQUIRES(mutex_);
  std::shared_ptr<Node> find(const std::filesystem::path& path) const STOKER_REQUIRES(mutex_);
  std::uint64_t used() const STOKER_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::shared_ptr<Node> root_ STOKER_GUARDED_BY(mutex_);
  std::size_t done_ STOKER_GUARDED_BY(mutex_) = 0;
  std::optional<std::size_t> cut_ STOKER_GUARDED_BY(mutex_);
  std::optional<Op> cut_op_ STOKER_GUARDED_BY(mutex_);
  std::map<std::size_t, ErrorCode> failures_ STOKER_GUARDED_BY(mutex_);
  std::optional<std::uint64_t> capacity_ STOKER_GUARDED_BY(mutex_);
};

}  // namespace stoker::testing
