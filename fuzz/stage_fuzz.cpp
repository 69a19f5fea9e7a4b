// Any bytes as a file to stage: its kind by the first bytes, and the directory of a zip.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "feed/stage/sniff.h"
#include "feed/stage/target.h"
#include "feed/stage/zip_directory.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  (void)feed::sniff_bytes(std::string_view(reinterpret_cast<const char*>(data), size), "input");
  const int fd = ::memfd_create("input", 0);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) return 0;
  const auto members = feed::read_zip_directory(fd, "input");
  ::close(fd);
  if (!members) return 0;
  for (const feed::ZipMember& member : *members) (void)feed::safe_member_name(member.name);
  return 0;
}
