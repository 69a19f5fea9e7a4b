#include "feed/stage/sniff.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include <fmt/format.h>

#include "stoker/base/text.h"

namespace stoker::feed {
namespace {

constexpr std::size_t kHead = std::size_t{1} << 16;
constexpr std::size_t kTarHeader = 512;

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return out;
}

// The first bytes of what a gzip stream holds; "" when it cannot be read.
std::string inflate_head(std::string_view head) {
  z_stream stream{};
  if (::inflateInit2(&stream, 15 + 16) != Z_OK) return "";
  std::string out(kTarHeader, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(head.data()));
  stream.avail_in = static_cast<uInt>(head.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  ::inflate(&stream, Z_SYNC_FLUSH);
  out.resize(out.size() - stream.avail_out);
  ::inflateEnd(&stream);
  return out;
}

Result<Packing> sniff_gzip(std::string_view head, const std::string& shown) {
  const std::string inside = inflate_head(head);
  if (is_tar_header(inside)) return Packing::kTarGz;
  if (inside.empty()) return Error{ErrorCode::kCorrupt, shown + " begins as a gzip file, but cannot be inflated"};
  return Error{ErrorCode::kUnsupported, shown + " is a gzip file that holds no tar archive", "unpack it with `gunzip`"};
}

std::string title_of(std::string_view page) {
  const std::string lower = lowered(page);
  const std::size_t tag = lower.find("<title");
  const std::size_t open = tag == std::string::npos ? tag : lower.find('>', tag);
  if (open == std::string::npos) return "";
  const std::size_t close = std::min(lower.find('<', open), open + 200);
  return printable(trim(page.substr(open + 1, close - open - 1)));
}

bool is_web_page(std::string_view text) {
  const std::string lower = lowered(text.substr(0, 4096));
  return begins(lower, "<!doctype html") || begins(lower, "<html") || begins(lower, "<head") ||
         (begins(lower, "<") && lower.find("<html") != std::string::npos);
}

// Text that a server sent in place of the file.
Result<Packing> refuse_text(std::string_view head, const std::string& shown) {
  std::string_view text = head;
  if (begins(text, "\xEF\xBB\xBF")) text.remove_prefix(3);
  text = trim(text);
  if (is_web_page(text)) {
    const std::string title = title_of(text);
    return Error{ErrorCode::kBadInput,
                 fmt::format("{} is no archive but a web page{}", shown, title.empty() ? "" : ": \"" + title + "\""),
                 "a server sent a quota, sign-in or error page under the archive's name; open the link in a browser to "
                 "read it, then download again"};
  }
  if (begins(text, "version https://git-lfs")) {
    return Error{ErrorCode::kBadInput, shown + " is a Git LFS pointer, not the file itself",
                 "fetch it: `git lfs pull`"};
  }
  const std::string first = printable(text.substr(0, std::min<std::size_t>(text.find('\n'), 80)));
  return Error{ErrorCode::kBadInput,
               fmt::format("{} is neither a folder nor an archive; it begins with \"{}\"", shown, first),
               "zip, tar, tar.gz, tar.bz2, tar.xz, tar.zst, 7z and folders can be staged"};
}

}  // namespace

const char* name(Packing packing) {
  switch (packing) {
    case Packing::kFolder:
      return "folder";
    case Packing::kZip:
      return "zip";
    case Packing::kTar:
      return "tar";
    case Packing::kTarGz:
      return "tar.gz";
    case Packing::kTarBz2:
      return "tar.bz2";
    case Packing::kTarXz:
      return "tar.xz";
    case Packing::kTarZst:
      return "tar.zst";
    case Packing::kSevenZip:
      return "7z";
  }
  return "unknown";
}

bool is_tar_header(std::string_view block) {
  if (block.size() < kTarHeader) return false;
  unsigned sum = 0;
  for (std::size_t i = 0; i < kTarHeader; ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block[i]);
  }
  unsigned stored = 0;
  std::string_view digits = trim(block.substr(148, 8));
  if (digits.empty() || digits[0] < '0' || digits[0] > '7') return false;
  for (const char c : digits) {
    if (c < '0' || c > '7') break;
    stored = stored * 8 + static_cast<unsigned>(c - '0');
  }
  return stored == sum;
}

Result<Packing> sniff_bytes(std::string_view head, const std::string& shown) {
  using namespace std::string_view_literals;
  if (head.empty()) {
    return Error{ErrorCode::kBadInput, shown + " is empty (0 bytes)",
                 "the download or copy did not finish; fetch it again"};
  }
  if (begins(head, "PK\x03\x04"sv) || begins(head, "PK\x05\x06"sv) || begins(head, "PK\x07\x08"sv))
    return Packing::kZip;
  if (begins(head, "\x1f\x8b"sv)) return sniff_gzip(head, shown);
  if (begins(head, "BZh"sv)) return Packing::kTarBz2;
  if (begins(head, "\xFD\x37\x7A\x58\x5A\x00"sv)) return Packing::kTarXz;
  if (begins(head, "\x28\xB5\x2F\xFD"sv)) return Packing::kTarZst;
  if (begins(head, "7z\xBC\xAF\x27\x1C"sv)) return Packing::kSevenZip;
  if (begins(head, "Rar!"sv)) {
    return Error{ErrorCode::kUnsupported, shown + " is a RAR archive", "unpack it with `unrar x`, or pack it as zip"};
  }
  if (is_tar_header(head)) return Packing::kTar;
  return refuse_text(head, shown);
}

Result<Packing> sniff(const std::filesystem::path& source) {
  const std::string shown = printable(source.native());
  std::error_code ignored;
  if (std::filesystem::is_directory(source, ignored)) return Packing::kFolder;
  const int fd = ::open(source.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_error(errno, "cannot open " + shown);
  std::string head(kHead, '\0');
  std::size_t used = 0;
  ssize_t got = 0;
  while (used < head.size() && (got = ::read(fd, head.data() + used, head.size() - used)) > 0) {
    used += static_cast<std::size_t>(got);
  }
  const int failed = got < 0 ? errno : 0;
  ::close(fd);
  if (failed != 0) return errno_error(failed, "cannot read " + shown);
  head.resize(used);
  return sniff_bytes(head, shown);
}

}  // namespace stoker::feed
