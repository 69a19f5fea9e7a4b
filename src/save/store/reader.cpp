#include "save/store/reader.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "save/store/errors.h"
#include "save/store/staging.h"
#include "stoker/base/hash.h"
#include "stoker/base/mutex.h"
#include "stoker/base/text.h"
#include "stoker/base/units.h"

namespace stoker::save {
namespace {

constexpr std::size_t kReadPiece = std::size_t{4} << 20;
constexpr std::size_t kBufferAlignment = 64;

using OpenParts = std::vector<std::unique_ptr<ReadableFile>>;

Error mismatch(const std::filesystem::path& file, const std::string& what, std::uint64_t offset, std::uint64_t size,
               const std::string& stored, const std::string& computed) {
  return {ErrorCode::kCorrupt, fmt::format("{} fails its hash\n  {}, offset {}, {} bytes: stored {}, computed {}", what,
                                           shown(file), offset, size, stored, computed)};
}

// What safetensors' header says of each tensor must be what the manifest says.
Status compare(const std::vector<TensorEntry>& header, const Manifest& manifest, std::size_t part) {
  std::unordered_map<std::string_view, const TensorEntry*> by_name;
  for (const TensorEntry& entry : header) by_name[entry.name] = &entry;
  for (const StoredTensor& tensor : manifest.tensors) {
    if (tensor.part != part) continue;
    const auto it = by_name.find(tensor.entry.name);
    if (it == by_name.end() || it->second->dtype != tensor.entry.dtype || it->second->shape != tensor.entry.shape ||
        it->second->offset != tensor.entry.offset) {
      return Error{ErrorCode::kCorrupt, fmt::format("{}: its header and the manifest differ on tensor {}",
                                                    manifest.parts[part].file, printable(tensor.entry.name))};
    }
  }
  return {};
}

Status check_part_header(ReadableFile& file, const std::filesystem::path& path, const Manifest& manifest,
                         std::size_t index) {
  const Part& part = manifest.parts[index];
  std::string bytes(part.header_bytes, '\0');  // within the file: decode() compared it with size_bytes
  STOKER_TRY(file.read_at(0, std::as_writable_bytes(std::span(bytes))));
  const std::string computed = hash128(bytes).hex();
  if (computed != part.header_hash)
    return mismatch(path, "the header of " + part.file, 0, part.header_bytes, part.header_hash, computed);
  const auto entries = parse_header(bytes, part.size_bytes);
  if (!entries) return Error{ErrorCode::kCorrupt, shown(path) + ": " + entries.error().message};
  return compare(*entries, manifest, index);
}

Result<std::unique_ptr<ReadableFile>> open_part(FileSystem& files, const std::filesystem::path& path,
                                                const Manifest& manifest, std::size_t index) {
  const Part& part = manifest.parts[index];
  auto file = files.open(path);
  if (!file) {
    Error error = file.error();
    if (error.code == ErrorCode::kNotFound) error.code = ErrorCode::kCorrupt;  // the manifest says it is there
    return error;
  }
  if ((*file)->size_bytes() != part.size_bytes) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} has {} bytes, its manifest says {}", shown(path),
                                                  (*file)->size_bytes(), part.size_bytes)};
  }
  STOKER_TRY(check_part_header(**file, path, manifest, index));
  return file;
}

Result<OpenParts> open_parts(FileSystem& files, const std::filesystem::path& checkpoint, const Manifest& manifest) {
  OpenParts open;
  for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
    auto file = open_part(files, checkpoint / manifest.parts[i].file, manifest, i);
    if (!file) return file.error();
    open.push_back(*std::move(file));
  }
  return open;
}

// Takes the pieces of one tensor, in order; null skips the copy.
Status read_and_hash(ReadableFile& file, const StoredTensor& tensor, std::byte* into, std::string& computed) {
  Hasher hasher;
  std::vector<std::byte> scratch(into == nullptr ? std::min<std::uint64_t>(kReadPiece, tensor.entry.size_bytes) : 0);
  for (std::uint64_t at = 0; at < tensor.entry.size_bytes; at += kReadPiece) {
    const std::size_t size = std::min<std::uint64_t>(kReadPiece, tensor.entry.size_bytes - at);
    const std::span<std::byte> piece(into == nullptr ? scratch.data() : into + at, size);
    STOKER_TRY(file.read_at(tensor.entry.offset + at, piece));
    hasher.update(piece);
  }
  computed = hasher.digest().hex();
  return {};
}

Status read_one(ReadableFile& file, const std::filesystem::path& path, const StoredTensor& tensor, std::byte* into) {
  std::string computed;
  STOKER_TRY(read_and_hash(file, tensor, into, computed));
  if (computed == tensor.hash) return {};
  return mismatch(path, "tensor " + printable(tensor.entry.name), tensor.entry.offset, tensor.entry.size_bytes,
                  tensor.hash, computed);
}

Result<Buffer> allocate(std::size_t size) {
  if (size == 0) return Buffer{};
  const std::size_t rounded = (size + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, rounded));
  if (memory == nullptr)
    return Error{ErrorCode::kNoSpace, fmt::format("no memory for a tensor of {}", format_size(size))};
  return Buffer{std::shared_ptr<std::byte>(memory, [](std::byte* bytes) { std::free(bytes); }), size};
}

// The first failure in the order of the tensors, whichever thread met one first.
class FirstError {
 public:
  void add(std::size_t index, const Status& status) {
    if (status) return;
    const MutexLock lock(mutex_);
    if (!found_ || index < found_->first) found_ = {index, status.error()};
  }
  Status status() {
    const MutexLock lock(mutex_);
    return found_ ? Status(found_->second) : Status();
  }

 private:
  Mutex mutex_;
  std::optional<std::pair<std::size_t, Error>> found_ STOKER_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::vector<LoadedTensor>> read_tensors(FileSystem& files, const std::filesystem::path& checkpoint,
                                               const Manifest& manifest, int threads) {
  const auto parts = open_parts(files, checkpoint, manifest);
  if (!parts) return parts.error();
  std::vector<LoadedTensor> loaded(manifest.tensors.size());
  FirstError first;
  parallel_for(loaded.size(), threads, [&](std::size_t i) {
    const StoredTensor& tensor = manifest.tensors[i];
    auto buffer = allocate(tensor.entry.size_bytes);
    if (!buffer) return first.add(i, buffer.status());
    first.add(
        i, read_one(*(*parts)[tensor.part], checkpoint / manifest.parts[tensor.part].file, tensor, buffer->data.get()));
    loaded[i] = {tensor.entry.name, tensor.entry.dtype, tensor.entry.shape, *std::move(buffer)};
  });
  STOKER_TRY(first.status());
  return loaded;
}

Status check_tensors(FileSystem& files, const std::filesystem::path& checkpoint, const Manifest& manifest,
                     int threads) {
  const auto parts = open_parts(files, checkpoint, manifest);
  if (!parts) return parts.error();
  FirstError first;
  parallel_for(manifest.tensors.size(), threads, [&](std::size_t i) {
    const StoredTensor& tensor = manifest.tensors[i];
    first.add(i, read_one(*(*parts)[tensor.part], checkpoint / manifest.parts[tensor.part].file, tensor, nullptr));
  });
  return first.status();
}

}  // namespace stoker::save
