// The list of a zip archive's members, from the central directory at its end.
//
//   end record      PK\5\6, 22 bytes + comment, in the last 65,557 bytes: number of members, directory's size and
//   offset zip64 locator   PK\6\7, 20 bytes, before the end record where a figure there is all ones member PK\1\2, 46
//   bytes + name + extra + comment
// Valid: the directory lies before the end record, holds exactly the number of members that the record names, and each
// member's local header lies before the directory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stoker/base/status.h"

namespace stoker::feed {

struct ZipMember {
  std::string name;  // as stored
  std::uint64_t size = 0;
  std::uint64_t packed_size = 0;
  std::uint64_t local_offset = 0;
  std::uint32_t crc = 0;
  std::uint16_t method = 0;  // 0 stored, 8 deflated
  std::uint16_t mode = 0;    // Unix mode bits, 0 where the archive was made elsewhere
  bool encrypted = false;

  bool is_directory() const { return !name.empty() && name.back() == '/'; }
  bool is_symlink() const { return (mode & 0170000) == 0120000; }
};

// `fd`: the archive, open for reading; `shown`: its name in messages. Memory is bounded by the file's own size.
// Errors: kCorrupt (no end record: cut short; or a directory that does not hold together), kIo.
Result<std::vector<ZipMember>> read_zip_directory(int fd, const std::string& shown);

}  // namespace stoker::feed
