// Zip members are independent: each is read by pread, inflated, and checked against its size and CRC-32.
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "feed/stage/bytes.h"
#include "feed/stage/target.h"
#include "feed/stage/zip_directory.h"
#include "stoker/base/hash.h"
#include "stoker/base/threads.h"

namespace stoker::feed {
namespace {

constexpr std::uint64_t kZipBlock = std::uint64_t{1} << 17;
constexpr std::uint64_t kLocalHeader = 30;
constexpr std::uint64_t kMaxLink = 4096;
constexpr int kStored = 0;
constexpr int kDeflated = 8;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

class Inflater {
 public:
  Inflater() : ok_(::inflateInit2(&stream_, -15) == Z_OK) {}
  ~Inflater() {
    if (ok_) ::inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool ok() const { return ok_; }
  bool ended() const { return ended_; }
  bool needs_input() const { return stream_.avail_in == 0; }
  void feed(std::string_view bytes) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
  }
  // Bytes made, or −1 when the stream is damaged.
  std::int64_t take(std::string& into) {
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(into.size());
    const int code = ::inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) ended_ = true;
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return -1;
    return static_cast<std::int64_t>(into.size() - stream_.avail_out);
  }

 private:
  z_stream stream_{};
  const bool ok_;
  bool ended_ = false;
};

class Unzipper {
 public:
  Unzipper(int fd, Target& target, Work& work) : fd_(fd), target_(target), work_(work) {}

  Status member(const ZipMember& member) {
    if (work_.stop_asked()) return cancelled_error();
    if (is_mac_litter(member.name)) {
      ++work_.skipped;
      return {};
    }
    const auto safe = safe_member_name(member.name);
    if (!safe) return safe.error();
    if (member.is_directory()) return target_.add_directory(*safe);
    if (member.encrypted)
      return unsupported(member, "is encrypted", "unpack it with `7z x`, which asks for the password");
    if (member.method != kStored && member.method != kDeflated) {
      return unsupported(member, fmt::format("is packed with method {}", member.method),
                         "unpack the archive with `7z x`");
    }
    if (member.is_symlink()) return link(member, *safe);
    return file(member, *safe);
  }

 private:
  Error damaged(const ZipMember& member, const std::string& what) const {
    return {ErrorCode::kCorrupt, fmt::format("{}: member '{}' {}", work_.source, printable_name(member.name), what),
            "the archive is damaged; compare its size or checksum with the original and fetch it again"};
  }
  Status unsupported(const ZipMember& member, const std::string& what, const std::string& hint) const {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: member '{}' {}", work_.source, printable_name(member.name), what), hint};
  }

  Status file(const ZipMember& member, const std::string& safe) {
    auto out = target_.add_file(safe, (member.mode & 0111) != 0);
    if (!out) return out.error();
    Status status = unpack(member, [&](std::string_view bytes) {
      work_.advance(bytes.size(), member.name);
      return out->write(bytes.data(), bytes.size());
    });
    if (status) status = out->close(0);
    if (!status) {
      target_.drop(safe);
      return status;
    }
    target_.count_file(member.size);
    return {};
  }

  Status link(const ZipMember& member, const std::string& safe) {
    if (member.size > kMaxLink) return damaged(member, "is a link with an end of more than 4096 bytes");
    std::string end;
    STOKER_TRY(unpack(member, [&](std::string_view bytes) {
      end += bytes;
      return Status();
    }));
    return target_.add_symlink(safe, end);
  }

  // Gives the member's bytes to `sink`, block by block, and checks them.
  template <typename Sink>
  Status unpack(const ZipMember& member, Sink sink) {
    auto header = read_exactly(fd_, member.local_offset, kLocalHeader, work_.source);
    if (!header) return header.error();
    if (header->compare(0, 4, "PK\3\4", 4) != 0) return damaged(member, "is not where the directory says");
    const std::uint64_t start = member.local_offset + kLocalHeader + little16(*header, 26) + little16(*header, 28);
    std::uint64_t size = 0;
    std::uint32_t crc = 0;
    const auto check = [&](std::string_view bytes) -> Status {
      size += bytes.size();
      if (size > member.size)
        return damaged(member, fmt::format("holds more than the {} bytes it declares", member.size));
      if (work_.stop_asked()) return cancelled_error();
      crc = crc32(std::as_bytes(std::span(bytes)), crc);
      return sink(bytes);
    };
    STOKER_TRY(member.method == kStored ? copy(member, start, check) : inflate(member, start, check));
    if (size != member.size) return damaged(member, fmt::format("holds {} bytes and declares {}", size, member.size));
    if (crc != member.crc) {
      return damaged(member, fmt::format("fails its checksum: stored {:08x}, computed {:08x}", member.crc, crc));
    }
    return {};
  }

  template <typename Sink>
  Status copy(const ZipMember& member, std::uint64_t start, Sink sink) {
    for (std::uint64_t done = 0; done < member.packed_size;) {
      const std::uint64_t now = std::min(kZipBlock, member.packed_size - done);
      auto bytes = read_exactly(fd_, start + done, now, work_.source);
      if (!bytes) return bytes.error();
      STOKER_TRY(sink(std::string_view(*bytes)));
      done += now;
    }
    return {};
  }

  template <typename Sink>
  Status inflate(const ZipMember& member, std::uint64_t start, Sink sink) {
    Inflater inflater;
    if (!inflater.ok()) return Error{ErrorCode::kIo, "zlib cannot start (out of memory)"};
    std::string in;
    std::string out(kZipBlock, '\0');
    std::uint64_t done = 0;
    while (!inflater.ended()) {
      if (inflater.needs_input() && done < member.packed_size) {
        const std::uint64_t now = std::min(kZipBlock, member.packed_size - done);
        auto bytes = read_exactly(fd_, start + done, now, work_.source);
        if (!bytes) return bytes.error();
        in = std::move(*bytes);
        inflater.feed(in);
        done += now;
      }
      const std::int64_t made = inflater.take(out);
      if (made < 0 || (made == 0 && !inflater.ended() && inflater.needs_input() && done == member.packed_size)) {
        return damaged(member, "cannot be inflated");
      }
      if (made > 0) STOKER_TRY(sink(std::string_view(out).substr(0, static_cast<std::size_t>(made))));
    }
    return {};
  }

  const int fd_;
  Target& target_;
  Work& work_;
};

}  // namespace

Result<Need> need_of_zip(const std::filesystem::path& archive) {
  const std::string shown = printable(archive.native());
  const Fd fd(::open(archive.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return errno_error(errno, "cannot open " + shown);
  const auto members = read_zip_directory(fd.get(), shown);
  if (!members) return members.error();
  Need need{0, 0, true};
  for (const ZipMember& member : *members) {
    if (member.is_directory() || is_mac_litter(member.name)) continue;
    // A figure near 2⁶⁴ must not wrap round to a small one.
    need.bytes = member.size > UINT64_MAX - need.bytes ? UINT64_MAX : need.bytes + member.size;
    ++need.files;
  }
  return need;
}

Status unzip(const std::filesystem::path& archive, Target& target, Work& work) {
  const Fd fd(::open(archive.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return errno_error(errno, "cannot open " + work.source);
  auto members = read_zip_directory(fd.get(), work.source);
  if (!members) return members.error();
  // In the order in which they lie in the file, so that the disk reads forward.
  std::stable_sort(members->begin(), members->end(),
                   [](const ZipMember& a, const ZipMember& b) { return a.local_offset < b.local_offset; });
  Unzipper unzipper(fd.get(), target, work);
  return for_each_parallel(members->size(), work.threads,
                           [&](std::size_t i) { return unzipper.member((*members)[i]); });
}

}  // namespace stoker::feed
