#include "save/store/writer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "save/store/catalog.h"
#include "stoker/base/events.h"
#include "stoker/base/hash.h"

namespace stoker::save {
namespace {

// Large enough for O_DIRECT to run at the disk's speed, small enough that an error is met soon.
constexpr std::size_t kWritePiece = std::size_t{16} << 20;

EventName kWriteEvent("save.write");
EventName kSyncEvent("save.sync");

class Span {
 public:
  Span(EventName& name, std::size_t bytes) : name_(name), bytes_(bytes) { emit(name_, EventKind::kBegin); }
  ~Span() { emit(name_, EventKind::kEnd, static_cast<double>(bytes_)); }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  EventName& name_;
  const std::size_t bytes_;
};

std::filesystem::path temporary_in(const std::filesystem::path& dir, std::string_view what) {
  static std::atomic<unsigned> serial{0};
  return dir / fmt::format("{}{}-{}-{}", kTemporaryPrefix, what, ::getpid(), serial++);
}

Status write_synced(FileSystem& files, const std::filesystem::path& path, std::span<const std::byte> bytes,
                    WriteMode mode) {
  auto file = files.create(path, mode);
  if (!file) return file.error();
  {
    const Span span(kWriteEvent, bytes.size());
    for (std::size_t at = 0; at < bytes.size(); at += kWritePiece)
      STOKER_TRY((*file)->append(bytes.subspan(at, std::min(kWritePiece, bytes.size() - at))));
  }
  const Span span(kSyncEvent, bytes.size());
  STOKER_TRY((*file)->sync());
  return (*file)->close();
}

// Collects what comes in pieces of any size into one buffer, and appends that when it is full: only the last append is
// no whole number of pages, as O_DIRECT needs it.
class Collector {
 public:
  Collector(WritableFile& file, std::span<std::byte> buffer) : file_(file), buffer_(buffer) {}

  Status add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const std::size_t size = std::min(bytes.size(), buffer_.size() - filled_);
      std::memcpy(buffer_.data() + filled_, bytes.data(), size);
      filled_ += size;
      bytes = bytes.subspan(size);
      if (filled_ == buffer_.size()) STOKER_TRY(flush());
    }
    return {};
  }

  Status flush() {
    if (filled_ == 0) return {};
    return file_.append(buffer_.first(std::exchange(filled_, 0)));
  }

 private:
  WritableFile& file_;
  const std::span<std::byte> buffer_;
  std::size_t filled_ = 0;
};

Status write_unstaged(FileSystem& files, const std::filesystem::path& path, const Unstaged& part, std::size_t size) {
  auto file = files.create(path, WriteMode::kDirect);
  if (!file) return file.error();
  {
    const Span span(kWriteEvent, size);
    Collector collector(**file, part.buffer);
    STOKER_TRY(collector.add(std::as_bytes(std::span(part.header))));
    for (const auto& source : part.sources) STOKER_TRY(collector.add(source.bytes));
    STOKER_TRY(collector.flush());
  }
  const Span span(kSyncEvent, size);
  STOKER_TRY((*file)->sync());
  return (*file)->close();
}

void set_hashes(WriteJob& job) {
  if (job.part.empty() && !job.unstaged) return;
  const std::size_t own = job.manifest.parts.size() - 1;
  Part& part = job.manifest.parts[own];
  if (job.unstaged) {
    part.header_hash = hash128(job.unstaged->header).hex();
    for (const auto& source : job.unstaged->sources)
      job.manifest.tensors[source.tensor].hash = hash128(source.bytes).hex();
    return;
  }
  part.header_hash = hash128(job.part.first(part.header_bytes)).hex();
  for (StoredTensor& tensor : job.manifest.tensors) {
    if (tensor.part == own) tensor.hash = hash128(job.part.subspan(tensor.entry.offset, tensor.entry.size_bytes)).hex();
  }
}

Status write_part(FileSystem& files, const WriteJob& job, const std::filesystem::path& into) {
  if (job.unstaged) {
    const Part& part = job.manifest.parts.back();
    return write_unstaged(files, into / part.file, *job.unstaged, part.size_bytes);
  }
  if (job.part.empty()) return {};
  return write_synced(files, into / job.manifest.parts.back().file, job.part, WriteMode::kDirect);
}

Status fill(FileSystem& files, const WriteJob& job, const std::filesystem::path& into, const std::string& manifest) {
  STOKER_TRY(files.create_directories(into));
  for (const SharedPart& shared : job.shared)
    STOKER_TRY(files.link(shared.from, into / job.manifest.parts[shared.part].file));
  STOKER_TRY(write_part(files, job, into));
  STOKER_TRY(write_synced(files, into / kManifestName, std::as_bytes(std::span(manifest)), WriteMode::kBuffered));
  return files.sync_directory(into);
}

Status publish(FileSystem& files, const std::filesystem::path& made, const std::filesystem::path& name) {
  STOKER_TRY(files.rename(made, name));
  Status synced = files.sync_directory(name.parent_path());
  // Not known to be durable: the caller is told that it failed, so it must not be there either.
  if (!synced) (void)files.rename(name, made);
  return synced;
}

}  // namespace

Status write_checkpoint(FileSystem& files, WriteJob& job) {
  set_hashes(job);
  const auto manifest = encode(job.manifest);
  if (!manifest) return manifest.error();
  const auto made = temporary_in(job.dir, job.name);
  Status status = fill(files, job, made, *manifest);
  if (status) status = publish(files, made, job.dir / job.name);
  if (!status) (void)files.remove_all(made);
  return status;
}

Status remove_checkpoint(FileSystem& files, const std::filesystem::path& checkpoint) {
  const auto gone = temporary_in(checkpoint.parent_path(), "gone");
  STOKER_TRY(files.rename(checkpoint, gone));
  return files.remove_all(gone);
}

Status remove_leftovers(FileSystem& files, const std::filesystem::path& dir) {
  const auto entries = files.list(dir);
  if (!entries) return entries.error();
  for (const FileInfo& entry : *entries) {
    if (entry.name.starts_with(kTemporaryPrefix)) STOKER_TRY(files.remove_all(dir / entry.name));
  }
  return {};
}

}  // namespace stoker::save
