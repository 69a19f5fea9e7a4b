// arc4random_buf for systems whose glibc has none (before 2.36), exported by the command in a release wheel: Debian
// 12's libarchive asks for it, and for nothing else that is newer than glibc 2.34. scripts/lower_glibc.py lets it ask
// here.
#include <sys/random.h>

#include <cstddef>
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) void arc4random_buf(void* into, std::size_t size) noexcept {
  auto* bytes = static_cast<unsigned char*>(into);
  while (size > 0) {
    const ssize_t got = ::getrandom(bytes, size, 0);
    if (got < 0) std::abort();  // as glibc's own: no caller is prepared for random bytes that are not
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
}
