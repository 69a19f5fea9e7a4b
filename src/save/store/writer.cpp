#include "save/store/writer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

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

void set_hashes(WriteJob& job) {
  if (job.part.empty()) return;
  const std::size_t own = job.manifest.parts.size() - 1;
  Part& part = job.manifest.parts[own];
  part.header_hash = hash128(job.part.first(part.header_bytes)).hex();
  for (StoredTensor& tensor : job.manifest.tensors) {
    if (tensor.part == own) tensor.hash = hash128(job.part.subspan(tensor.entry.offset, tensor.entry.size_bytes)).hex();
  }
}

Status fill(FileSystem& files, const WriteJob& job, const std::filesystem::path& into, const std::string& manifest) {
  STOKER_TRY(files.create_directories(into));
  for (const SharedPart& shared : job.shared)
    STOKER_TRY(files.link(shared.from, into / job.manifest.parts[shared.part].file));
  if (!job.part.empty())
    STOKER_TRY(write_synced(files, into / job.manifest.parts.back().file, job.part, WriteMode::kDirect));
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
