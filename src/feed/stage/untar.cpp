// Tar in all its dialects, and 7z, by libarchive. Gzip is inflated here, because libarchive does not check its CRC.
#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "feed/stage/bytes.h"
#include "feed/stage/sniff.h"
#include "feed/stage/target.h"

namespace stoker::feed {
namespace {

constexpr std::size_t kTarBlockBytes = std::size_t{1} << 18;

// The archive's bytes, inflated where they are gzip; counts what it reads from the disk.
class Source {
 public:
  Source(int fd, bool gzip, Work& work)
      : fd_(fd), gzip_(gzip), work_(work), in_(kTarBlockBytes, '\0'), out_(kTarBlockBytes, '\0') {
    if (gzip_) ok_ = ::inflateInit2(&stream_, 15 + 16) == Z_OK;
  }
  ~Source() {
    if (gzip_ && ok_) ::inflateEnd(&stream_);
    ::close(fd_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // The next bytes, 0 at the end, −1 on failure, which error() then tells.
  la_ssize_t next(const void** bytes) { return gzip_ ? next_inflated(bytes) : next_raw(bytes); }
  const Status& error() const { return error_; }
  std::uint64_t read() const { return read_; }

 private:
  la_ssize_t fail(Error error) {
    error_ = std::move(error);
    return -1;
  }

  la_ssize_t next_raw(const void** bytes) {
    ssize_t got = 0;
    do {
      got = ::read(fd_, in_.data(), in_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) return fail(errno_error(errno, "cannot read " + work_.source));
    read_ += static_cast<std::uint64_t>(got);
    work_.advance(static_cast<std::uint64_t>(got), "");
    *bytes = in_.data();
    return got;
  }

  bool fill() {
    const void* bytes = nullptr;
    const la_ssize_t got = next_raw(&bytes);
    stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
    stream_.avail_in = got > 0 ? static_cast<uInt>(got) : 0;
    return got > 0;
  }

  la_ssize_t next_inflated(const void** bytes) {
    if (!ok_) return fail({ErrorCode::kIo, "zlib cannot start (out of memory)"});
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_.avail_out = static_cast<uInt>(out_.size());
    while (stream_.avail_out == out_.size()) {
      if (stream_.avail_in == 0 && !fill()) {
        if (!error_.ok()) return -1;
        if (between_members_) return 0;
        return fail({ErrorCode::kCorrupt,
                     fmt::format("{} is cut short: its gzip stream breaks off at {} bytes", work_.source, read_)});
      }
      // Zeros after the last member are padding of a tape or a block device.
      if (between_members_ && stream_.next_in[0] == 0) return 0;
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      between_members_ = code == Z_STREAM_END;
      if (code == Z_STREAM_END) {
        ::inflateReset(&stream_);
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        const char* why = stream_.msg != nullptr ? stream_.msg : "damaged data";
        return fail({ErrorCode::kCorrupt, fmt::format("{} is damaged near byte {}: {}", work_.source, read_, why)});
      }
    }
    *bytes = out_.data();
    return static_cast<la_ssize_t>(out_.size() - stream_.avail_out);
  }

  const int fd_;
  const bool gzip_;
  Work& work_;
  bool ok_ = true;
  bool between_members_ = false;
  std::uint64_t read_ = 0;
  Status error_;
  std::string in_;
  std::string out_;
  z_stream stream_{};
};

la_ssize_t read_source(struct ::archive*, void* source, const void** bytes) {
  return static_cast<Source*>(source)->next(bytes);
}

struct Closer {
  void operator()(struct ::archive* archive) const { ::archive_read_free(archive); }
};
using Reader = std::unique_ptr<struct ::archive, Closer>;

Reader make_reader() {
  Reader reader(::archive_read_new());
  ::archive_read_support_filter_all(reader.get());
  ::archive_read_support_format_tar(reader.get());
  ::archive_read_support_format_gnutar(reader.get());
  ::archive_read_support_format_7zip(reader.get());
  return reader;
}

// UTF-8 where the header says what it is, else the bytes as they stand.
std::string text_of(const char* utf8, const char* raw) { return utf8 != nullptr ? utf8 : raw != nullptr ? raw : ""; }

class Untarrer {
 public:
  Untarrer(struct ::archive* reader, const Source* source, Target& target, Work& work)
      : reader_(reader), source_(source), target_(target), work_(work) {}

  Status run() {
    for (;;) {
      if (work_.stop_asked()) return cancelled_error();
      struct ::archive_entry* entry = nullptr;
      const int code = ::archive_read_next_header(reader_, &entry);
      if (code == ARCHIVE_EOF) return {};
      if (code < ARCHIVE_WARN) return broken("");
      STOKER_TRY(member(entry));
    }
  }

 private:
  // What libarchive or the source ran into, and how far the work got.
  Status broken(const std::string& inside) const {
    Error error{ErrorCode::kCorrupt, ""};
    if (source_ != nullptr && !source_->error().ok()) {
      error = source_->error().error();
    } else {
      const char* words = ::archive_error_string(reader_);
      error.message = fmt::format("{} is cut short or damaged: {}", work_.source,
                                  words != nullptr ? printable(words) : "its end is missing");
    }
    if (error.code != ErrorCode::kCorrupt) return error;
    if (!inside.empty()) error.message += fmt::format(", in member '{}'", printable_name(inside));
    error.message += fmt::format(" ({} whole files before it)", target_.files());
    error.hint =
        "the download or copy did not finish; compare its size or checksum with the original and fetch it again";
    return error;
  }

  Status member(struct ::archive_entry* entry) {
    const std::string name = text_of(::archive_entry_pathname_utf8(entry), ::archive_entry_pathname(entry));
    if (is_mac_litter(name)) {
      ++work_.skipped;
      return {};
    }
    const auto safe = safe_member_name(name);
    if (!safe) return safe.error();
    const std::string hard = text_of(::archive_entry_hardlink_utf8(entry), ::archive_entry_hardlink(entry));
    if (!hard.empty()) {
      const auto existing = safe_member_name(hard);
      if (!existing) return existing.error();
      return target_.add_hard_link(*safe, *existing);
    }
    switch (::archive_entry_filetype(entry)) {
      case AE_IFDIR:
        return target_.add_directory(*safe);
      case AE_IFLNK:
        return target_.add_symlink(*safe, text_of(::archive_entry_symlink_utf8(entry), ::archive_entry_symlink(entry)));
      case AE_IFREG:
        return file(entry, *safe);
      default:
        return Error{ErrorCode::kBadInput,
                     fmt::format("{}: member '{}' is a device, pipe or socket; refused, and nothing was kept",
                                 work_.source, printable_name(name)),
                     "a data set has no such members; do not trust this archive"};
    }
  }

  Status file(struct ::archive_entry* entry, const std::string& safe) {
    const auto declared = static_cast<std::uint64_t>(::archive_entry_size(entry));
    STOKER_TRY(target_.check_room(declared, safe));
    auto out = target_.add_file(safe, (::archive_entry_perm(entry) & 0111) != 0);
    if (!out) return out.error();
    std::uint64_t size = 0;
    Status status = copy(*out, safe, size);
    if (status && ::archive_entry_size_is_set(entry) != 0 && size != declared) status = broken(safe);
    if (status) status = out->close(::archive_entry_mtime(entry));
    if (!status) {
      target_.drop(safe);
      return status;
    }
    target_.count_file(size);
    return {};
  }

  Status copy(MemberFile& out, const std::string& safe, std::uint64_t& size) {
    for (;;) {
      const void* bytes = nullptr;
      std::size_t count = 0;
      la_int64_t offset = 0;
      const int code = ::archive_read_data_block(reader_, &bytes, &count, &offset);
      if (code == ARCHIVE_EOF) return fill_hole(out, size, static_cast<std::uint64_t>(offset));
      if (code < ARCHIVE_WARN) return broken(safe);
      if (work_.stop_asked()) return cancelled_error();
      STOKER_TRY(fill_hole(out, size, static_cast<std::uint64_t>(offset)));
      STOKER_TRY(out.write(bytes, count));
      size += count;
    }
  }

  // A sparse member skips its zeros.
  static Status fill_hole(MemberFile& out, std::uint64_t& size, std::uint64_t offset) {
    static const std::string zeros(std::size_t{1} << 16, '\0');
    while (size < offset) {
      const std::uint64_t now = std::min<std::uint64_t>(zeros.size(), offset - size);
      STOKER_TRY(out.write(zeros.data(), now));
      size += now;
    }
    return {};
  }

  struct ::archive* const reader_;
  const Source* const source_;
  Target& target_;
  Work& work_;
};

// A tar ends in 1,024 zero bytes. One that was cut exactly between two members has lost only these.
void warn_without_end(int fd, const Work& work) {
  constexpr std::uint64_t kEndMark = 1024;
  struct ::stat info {};
  if (!work.notice || ::fstat(fd, &info) != 0) return;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  const auto end = size >= kEndMark ? read_exactly(fd, size - kEndMark, kEndMark, work.source) : std::string(1, 'x');
  if (!end.ok() || end->find_first_not_of('\0') == std::string::npos) return;
  work.notice(Severity::kWarning,
              work.source + " has no end mark: if it was cut between two members, the rest is missing");
}

// 7z needs to seek, so libarchive opens the file itself.
Status un7z(const std::filesystem::path& archive, Target& target, Work& work) {
  const Reader reader = make_reader();
  if (::archive_read_open_filename(reader.get(), archive.c_str(), kTarBlockBytes) != ARCHIVE_OK) {
    const char* words = ::archive_error_string(reader.get());
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: {}", work.source, words != nullptr ? printable(words) : "damaged")};
  }
  return Untarrer(reader.get(), nullptr, target, work).run();
}

}  // namespace

Status untar(const std::filesystem::path& archive, Packing packing, Target& target, Work& work) {
  if (packing == Packing::kSevenZip) return un7z(archive, target, work);
  const int fd = ::open(archive.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_error(errno, "cannot open " + work.source);
  Source source(fd, packing == Packing::kTarGz, work);
  const Reader reader = make_reader();
  if (::archive_read_open2(reader.get(), &source, nullptr, read_source, nullptr, nullptr) != ARCHIVE_OK) {
    if (!source.error().ok()) return source.error();
    const char* words = ::archive_error_string(reader.get());
    return Error{ErrorCode::kCorrupt, fmt::format("{} holds no tar archive: {}", work.source,
                                                  words != nullptr ? printable(words) : "damaged")};
  }
  STOKER_TRY(Untarrer(reader.get(), &source, target, work).run());
  // The rest of the stream has the checksum of what was read.
  const void* bytes = nullptr;
  la_ssize_t got = 0;
  while ((got = source.next(&bytes)) > 0) {
  }
  if (got < 0) return source.error();
  if (packing == Packing::kTar) warn_without_end(fd, work);
  return {};
}

}  // namespace stoker::feed
