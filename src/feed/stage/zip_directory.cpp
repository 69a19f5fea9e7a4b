#include "feed/stage/zip_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "feed/stage/bytes.h"

namespace stoker::feed {
namespace {

constexpr std::uint64_t kEndSize = 22;
constexpr std::uint64_t kMaxComment = 65535;
constexpr std::uint64_t kLocatorSize = 20;
constexpr std::uint64_t kEnd64Size = 56;
constexpr std::size_t kMemberSize = 46;

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 0;
};

Error corrupt(const std::string& shown, const std::string& what) {
  return {ErrorCode::kCorrupt, fmt::format("{}: {}", shown, what),
          "the archive is damaged; compare its size or checksum with the original and fetch it again"};
}

// Where the end record starts in `tail`, the last bytes of the file; npos when there is none.
std::size_t find_end(std::string_view tail) {
  for (std::size_t at = tail.size() < kEndSize ? std::string_view::npos : tail.size() - kEndSize;
       at != std::string_view::npos; at = at == 0 ? std::string_view::npos : at - 1) {
    if (tail.compare(at, 4, "PK\5\6", 4) == 0 && at + kEndSize + little16(tail, at + 20) <= tail.size()) return at;
  }
  return std::string_view::npos;
}

Result<Directory> read_end64(int fd, const std::string& shown, std::uint64_t end_offset) {
  if (end_offset < kLocatorSize) return corrupt(shown, "the zip64 locator is missing");
  auto locator = read_exactly(fd, end_offset - kLocatorSize, kLocatorSize, shown);
  if (!locator) return locator.error();
  if (locator->compare(0, 4, "PK\6\7", 4) != 0) return corrupt(shown, "the zip64 locator is missing");
  const std::uint64_t at = little64(*locator, 8);
  if (at > end_offset || end_offset - at < kEnd64Size)
    return corrupt(shown, "the zip64 end record lies outside the file");
  auto record = read_exactly(fd, at, kEnd64Size, shown);
  if (!record) return record.error();
  if (record->compare(0, 4, "PK\6\6", 4) != 0) return corrupt(shown, "the zip64 end record is missing");
  return Directory{little64(*record, 48), little64(*record, 40), little64(*record, 32)};
}

// Sizes and offset of a large member stand in an extra field, in this order, each only where the short one is all ones.
void read_extra64(std::string_view extra, ZipMember& member) {
  while (extra.size() >= 4) {
    const std::size_t size = std::min<std::size_t>(little16(extra, 2), extra.size() - 4);
    std::string_view field = extra.substr(4, size);
    if (little16(extra, 0) == 1) {
      for (std::uint64_t* figure : {&member.size, &member.packed_size, &member.local_offset}) {
        if (*figure != 0xFFFFFFFF || field.size() < 8) continue;
        *figure = little64(field, 0);
        field.remove_prefix(8);
      }
    }
    extra.remove_prefix(4 + size);
  }
}

// The member at the start of `bytes`, which is cut to what follows.
bool take_member(std::string_view& bytes, ZipMember& member) {
  if (bytes.size() < kMemberSize || bytes.compare(0, 4, "PK\1\2", 4) != 0) return false;
  const std::size_t name = little16(bytes, 28);
  const std::size_t extra = little16(bytes, 30);
  const std::size_t whole = kMemberSize + name + extra + little16(bytes, 32);
  if (whole > bytes.size()) return false;
  member.encrypted = (little16(bytes, 8) & 1) != 0;
  member.method = little16(bytes, 10);
  member.crc = little32(bytes, 16);
  member.packed_size = little32(bytes, 20);
  member.size = little32(bytes, 24);
  member.local_offset = little32(bytes, 42);
  const bool made_on_unix = (little16(bytes, 4) >> 8) == 3;
  member.mode = made_on_unix ? static_cast<std::uint16_t>(little32(bytes, 38) >> 16) : std::uint16_t{0};
  member.name = bytes.substr(kMemberSize, name);
  read_extra64(bytes.substr(kMemberSize + name, extra), member);
  bytes.remove_prefix(whole);
  return true;
}

Result<Directory> find_directory(int fd, const std::string& shown, std::uint64_t file_size, std::uint64_t& end_offset) {
  const std::uint64_t tail_size = std::min(file_size, kEndSize + kMaxComment);
  auto tail = read_exactly(fd, file_size - tail_size, tail_size, shown);
  if (!tail) return tail.error();
  const std::size_t at = find_end(*tail);
  if (at == std::string_view::npos) {
    return corrupt(shown, fmt::format("a zip archive without its end: cut short at {} bytes", file_size));
  }
  end_offset = file_size - tail_size + at;
  const std::string_view end = std::string_view(*tail).substr(at);
  Directory directory{little32(end, 16), little32(end, 12), little16(end, 10)};
  if (directory.offset == 0xFFFFFFFF || directory.size == 0xFFFFFFFF || directory.count == 0xFFFF) {
    auto large = read_end64(fd, shown, end_offset);
    // An archive of exactly 65,535 members without zip64 records is legal too.
    if (large.ok()) directory = *large;
    if (!large.ok() && directory.count != 0xFFFF) return large.error();
  }
  return directory;
}

}  // namespace

Result<std::vector<ZipMember>> read_zip_directory(int fd, const std::string& shown) {
  struct ::stat info {};
  if (::fstat(fd, &info) != 0) return errno_error(errno, "cannot look at " + shown);
  std::uint64_t end_offset = 0;
  const auto directory = find_directory(fd, shown, static_cast<std::uint64_t>(info.st_size), end_offset);
  if (!directory) return directory.error();
  if (directory->offset > end_offset || directory->size > end_offset - directory->offset) {
    return corrupt(shown, fmt::format("its directory is said to lie at {} + {}, beyond its end at {}",
                                      directory->offset, directory->size, end_offset));
  }
  auto bytes = read_exactly(fd, directory->offset, directory->size, shown);
  if (!bytes) return bytes.error();
  std::vector<ZipMember> members;
  std::string_view rest = *bytes;
  for (ZipMember member; take_member(rest, member); member = {}) {
    if (member.local_offset >= directory->offset) {
      return corrupt(shown, "a member is said to lie beyond the directory: " + printable_name(member.name));
    }
    members.push_back(std::move(member));
  }
  if (members.size() != directory->count) {
    return corrupt(shown, fmt::format("its directory names {} members and holds {}", directory->count, members.size()));
  }
  return members;
}

}  // namespace stoker::feed
