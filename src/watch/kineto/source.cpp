#include "watch/kineto/source.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/mutex.h"
#include "stoker/base/threads.h"

namespace stoker::watch::kineto {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{120} << 10;  // below malloc's mmap threshold, so that pieces are reused
constexpr std::size_t kPackedBytes = std::size_t{64} << 10;

// The file in order, without a copy of its own.
class FileCursor {
 public:
  explicit FileCursor(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}

  std::uint64_t offset() const { return offset_; }
  bool at_end() const { return offset_ >= file_->size_bytes(); }
  // Up to `most` bytes into `into`.
  Status read(std::size_t most, std::string& into) {
    into.resize(static_cast<std::size_t>(std::min<std::uint64_t>(most, file_->size_bytes() - offset_)));
    STOKER_TRY(file_->read_at(offset_, std::as_writable_bytes(std::span(into.data(), into.size()))));
    offset_ += into.size();
    return {};
  }

 private:
  std::unique_ptr<ReadableFile> file_;
  std::uint64_t offset_ = 0;
};

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(FileCursor file) : file_(std::move(file)) {}
  Result<std::string> next() override {
    std::string piece;
    if (!file_.at_end()) STOKER_TRY(file_.read(kPieceBytes, piece));
    return piece;
  }

 private:
  FileCursor file_;
};

// zlib's stream, as an owner. Several gzip members after each other are one text.
class Inflater {
 public:
  Inflater() : ok_(::inflateInit2(&stream_, 15 + 16) == Z_OK) {}
  ~Inflater() {
    if (ok_) ::inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool ok() const { return ok_; }
  bool hungry() const { return stream_.avail_in == 0; }
  bool between_members() const { return ended_; }
  void feed(std::string& packed) {
    stream_.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream_.avail_in = static_cast<uInt>(packed.size());
  }
  // Appends to `piece`, up to its capacity; false when the data is damaged. What follows the last member and is none
  // itself is padding, as gzip(1) treats it.
  bool inflate(std::string& piece) {
    if (ended_) {
      if (stream_.avail_in > 0 && *stream_.next_in != 0x1f) {
        stream_.avail_in = 0;
        return true;
      }
      if (::inflateReset(&stream_) != Z_OK) return false;
      ended_ = false;
    }
    const std::size_t before = piece.size();
    piece.resize(kPieceBytes);
    stream_.next_out = reinterpret_cast<Bytef*>(piece.data() + before);
    stream_.avail_out = static_cast<uInt>(piece.size() - before);
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    piece.resize(piece.size() - stream_.avail_out);
    ended_ = code == Z_STREAM_END;
    return code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR;
  }

 private:
  z_stream stream_{};
  bool ok_;
  bool ended_ = false;
};

// Rules of the two threads:
// 1. The worker pushes pieces in order; a piece that is not full is pushed only at the end.
// 2. At its end (of the file, by damage or by an error) it leaves the reason and then closes the queue.
// 3. next() sees every piece that was pushed, then the error if there was one, then the end.
// 4. Destruction stops the worker within one piece, whether it waits for room or works.
class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(FileCursor file)
      : file_(std::move(file)), pieces_(6), thread_([this](std::stop_token stop) { run(stop); }) {}

  Result<std::string> next() override {
    if (auto piece = pieces_.pop()) return std::move(*piece);
    MutexLock lock(mutex_);
    if (error_) return *error_;
    return std::string();
  }
  std::string damage() const override {
    MutexLock lock(mutex_);
    return damage_;
  }

 private:
  void run(std::stop_token stop) {
    set_thread_name("trace-inflate");
    Inflater inflater;
    std::string packed;
    std::string piece;
    bool more = inflater.ok();
    if (!more) fail(Error{ErrorCode::kIo, "zlib cannot start (out of memory)"});
    while (more && !stop.stop_requested()) {
      if (inflater.hungry()) more = refill(inflater, packed);
      if (!more) break;
      piece.reserve(kPieceBytes);
      if (!inflater.inflate(piece)) {
        more = false;
        say_damage(fmt::format("its gzip data is damaged before byte {}", file_.offset()));
      }
      if (piece.size() >= kPieceBytes) {
        if (!pieces_.push(std::exchange(piece, {}), stop)) break;
      }
    }
    if (!piece.empty()) pieces_.push(std::move(piece), stop);
    pieces_.close();
  }

  bool refill(Inflater& inflater, std::string& packed) {
    if (file_.at_end()) {
      if (!inflater.between_members()) say_damage(fmt::format("its gzip data ends early, at byte {}", file_.offset()));
      return false;
    }
    if (const Status status = file_.read(kPackedBytes, packed); !status) {
      fail(status.error());
      return false;
    }
    inflater.feed(packed);
    return true;
  }

  void fail(Error error) {
    MutexLock lock(mutex_);
    error_ = std::move(error);
  }
  void say_damage(std::string damage) {
    MutexLock lock(mutex_);
    damage_ = std::move(damage);
  }

  FileCursor file_;  // the worker's alone

  BoundedQueue<std::string> pieces_;

  mutable Mutex mutex_;
  std::optional<Error> error_ STOKER_GUARDED_BY(mutex_);
  std::string damage_ STOKER_GUARDED_BY(mutex_);

  std::jthread thread_;  // last: starts after, and stops before, all that it uses
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_source(std::unique_ptr<ReadableFile> file, const std::string& shown_name) {
  std::array<unsigned char, 4> head{};
  const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(head.size(), file->size_bytes()));
  if (size == 0) {
    return Error{ErrorCode::kBadInput, shown_name + " is empty",
                 "the profiler writes its file when it stops; was the script ended before that?"};
  }
  STOKER_TRY(file->read_at(0, std::as_writable_bytes(std::span(head.data(), size))));
  FileCursor cursor(std::move(file));
  if (head[0] == 0x1f && head[1] == 0x8b) {
    return std::unique_ptr<ByteSource>(std::make_unique<GzipSource>(std::move(cursor)));
  }
  const bool zip = head[0] == 'P' && head[1] == 'K';
  const bool zstd = head[0] == 0x28 && head[1] == 0xb5 && head[2] == 0x2f && head[3] == 0xfd;
  if (zip || zstd) {
    return Error{ErrorCode::kBadInput, fmt::format("{} is a {} archive, not JSON", shown_name, zip ? "zip" : "zstd"),
                 "unpack it first; gzip alone is read as it is"};
  }
  return std::unique_ptr<ByteSource>(std::make_unique<PlainSource>(std::move(cursor)));
}

}  // namespace stoker::watch::kineto
