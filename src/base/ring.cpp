#include "base/ring.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "stoker/base/text.h"

namespace stoker {
namespace {

std::size_t slots_offset(const RingHeader& header) {
  return kRingHeaderBytes + std::size_t{header.names} * kRingNameBytes;
}
std::size_t events_offset(const RingHeader& header) {
  return slots_offset(header) + std::size_t{header.slots} * sizeof(RingSlot);
}
std::size_t total_bytes(const RingHeader& header) {
  return events_offset(header) + std::size_t{header.slots} * header.capacity * sizeof(Event);
}

bool sane(const RingHeader& header) {
  return std::memcmp(header.magic, kRingMagic, sizeof kRingMagic) == 0 && header.names >= 1 &&
         header.names <= 1U << 16 && header.slots >= 1 && header.slots <= 1U << 12 &&
         std::has_single_bit(header.capacity) && header.capacity <= 1U << 22;
}

Result<void*> map_file(int fd, std::size_t bytes, const std::string& path) {
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return errno_error(errno, "cannot map the event ring " + printable(path));
  return base;
}

}  // namespace

Result<std::shared_ptr<Ring>> Ring::create(const std::string& path, RingOptions options) {
  RingHeader header{};
  std::memcpy(header.magic, kRingMagic, sizeof kRingMagic);
  header.names = options.names;
  header.slots = options.slots;
  header.capacity = options.capacity;
  STOKER_CHECK(sane(header), "ring options out of range");

  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno_error(errno, "cannot create the event ring " + printable(path));
  const std::size_t bytes = total_bytes(header);
  Result<void*> base = Error{};
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    base = errno_error(errno, "cannot size the event ring " + printable(path));
  } else {
    base = map_file(fd, bytes, path);
  }
  ::close(fd);
  if (!base) {
    ::unlink(path.c_str());
    return base.error();
  }
  std::shared_ptr<Ring> ring(new Ring(*base, bytes));
  auto& mapped = ring->header();
  mapped.names = header.names;
  mapped.slots = header.slots;
  mapped.capacity = header.capacity;
  mapped.names_used = 1;
  std::memcpy(mapped.magic, header.magic, sizeof header.magic);  // last: a reader that sees it sees the sizes
  return ring;
}

Result<std::shared_ptr<Ring>> Ring::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return errno_error(errno, "cannot open the event ring " + printable(path));
  struct ::stat info {};
  alignas(RingHeader) char bytes[sizeof(RingHeader)] = {};
  const bool read =
      ::fstat(fd, &info) == 0 && ::pread(fd, bytes, sizeof bytes, 0) == static_cast<ssize_t>(sizeof bytes);
  const auto& header = *reinterpret_cast<const RingHeader*>(bytes);
  Result<void*> base = Error{ErrorCode::kCorrupt, printable(path) + " is not an event ring of this version"};
  if (read && sane(header) && static_cast<std::size_t>(info.st_size) == total_bytes(header)) {
    base = map_file(fd, total_bytes(header), path);
  }
  ::close(fd);
  if (!base) return base.error();
  return std::shared_ptr<Ring>(new Ring(*base, total_bytes(header)));
}

Ring::~Ring() { ::munmap(base_, bytes_); }

RingName& Ring::name(std::uint32_t index) const {
  return reinterpret_cast<RingName*>(static_cast<char*>(base_) + kRingHeaderBytes)[index];
}

RingSlot& Ring::slot(std::uint32_t index) const {
  return reinterpret_cast<RingSlot*>(static_cast<char*>(base_) + slots_offset(header()))[index];
}

std::atomic<std::uint64_t>* Ring::event_words(std::uint32_t slot, std::uint64_t n) const {
  const std::size_t index = std::size_t{slot} * header().capacity + (n & (header().capacity - 1));
  return reinterpret_cast<std::atomic<std::uint64_t>*>(static_cast<char*>(base_) + events_offset(header()) +
                                                       index * sizeof(Event));
}

std::string Ring::name_text(std::uint32_t index) const {
  if (index >= header().names) return "";
  const RingName& entry = name(index);
  if (entry.ready.load(std::memory_order_acquire) != 1) return "";
  return {entry.text, ::strnlen(entry.text, sizeof entry.text)};
}

std::uint32_t Ring::intern(std::string_view text) const {
  text = text.substr(0, sizeof(RingName::text));
  const std::uint32_t used = std::min(header().names_used.load(std::memory_order_acquire), header().names);
  for (std::uint32_t i = 1; i < used; ++i) {
    if (name_text(i) == text) return i;
  }
  // Claimed by compare-and-swap, so that a full table does not count on for ever.
  std::uint32_t index = header().names_used.load();
  do {
    if (index >= header().names) return 0;
  } while (!header().names_used.compare_exchange_weak(index, index + 1));
  RingName& entry = name(index);
  std::memcpy(entry.text, text.data(), text.size());
  entry.ready.store(1, std::memory_order_release);
  return index;
}

int Ring::claim_slot() const {
  for (const std::uint32_t wanted : {2U, 0U}) {  // a slot that was given back before a fresh one
    for (std::uint32_t i = 0; i < header().slots; ++i) {
      RingSlot& candidate = slot(i);
      std::uint32_t expected = wanted;
      if (!candidate.state.compare_exchange_strong(expected, 1)) continue;
      candidate.pid = static_cast<std::uint32_t>(::getpid());
      candidate.tid = static_cast<std::uint32_t>(::gettid());
      ::pthread_getname_np(::pthread_self(), candidate.thread_name, sizeof candidate.thread_name);
      return static_cast<int>(i);
    }
  }
  return -1;
}

RingReader::RingReader(std::shared_ptr<Ring> ring) : ring_(std::move(ring)), next_(ring_->header().slots, 0) {}

std::uint64_t RingReader::drain(const std::function<void(const Event&)>& sink) {
  std::uint64_t lost = 0;
  for (std::uint32_t i = 0; i < ring_->header().slots; ++i) lost += drain_slot(i, sink);
  const std::uint64_t homeless = ring_->header().homeless.load(std::memory_order_relaxed);
  lost += homeless - homeless_seen_;
  homeless_seen_ = homeless;
  return lost;
}

std::uint64_t RingReader::drain_slot(std::uint32_t slot, const std::function<void(const Event&)>& sink) {
  const RingSlot& source = ring_->slot(slot);
  const std::uint64_t capacity = ring_->header().capacity;
  const std::uint64_t end = source.written.load(std::memory_order_acquire);
  std::uint64_t next = next_[slot];
  if (end <= next) return 0;
  std::uint64_t lost = 0;
  if (end - next >= capacity) {
    lost = end - next - (capacity - 1);
    next += lost;
  }
  for (; next < end; ++next) {
    const auto* words = ring_->event_words(slot, next);
    std::uint64_t copy[4];
    for (int i = 0; i < 4; ++i) copy[i] = words[i].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (source.written.load(std::memory_order_relaxed) > next + capacity - 1) {
      ++lost;  // overwritten while it was read
      continue;
    }
    sink(std::bit_cast<Event>(copy));
  }
  next_[slot] = next;
  return lost;
}

}  // namespace stoker
