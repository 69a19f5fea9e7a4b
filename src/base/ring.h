// The ring file: how events cross from a trainee to its recorder. Little-endian, one version, both ends on one machine.
//
//   offset             size          what
//   0                  4096          header: RingHeader
//   4096               names × 64    RingName: bytes 0–3 "ready" (1 once the text is whole), 4–63 text, NUL-padded
//   … slots            slots × 64    RingSlot: one writer thread each
//   … events           slots × capacity × 32   Event (include/stoker/base/events.h), event n of a slot at n % capacity
//
// A slot's event n is valid if, read after its bytes, `written` is > n and ≤ n + capacity - 1: the writer stores the 32
// bytes first and `written` after, and may at that moment be overwriting event `written - capacity`.
// docs/formats/ring.md repeats this for writers in other languages.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/base/events.h"
#include "stoker/base/status.h"

namespace stoker {

inline constexpr char kRingMagic[8] = {'S', 'T', 'K', 'R', 'I', 'N', 'G', '1'};
inline constexpr std::size_t kRingHeaderBytes = 4096;
inline constexpr std::size_t kRingNameBytes = 64;

struct RingHeader {
  char magic[8];
  std::uint32_t names;     // entries in the name table; entry 0 is "unnamed"
  std::uint32_t slots;     // writer threads at once
  std::uint32_t capacity;  // events a slot; a power of two
  std::atomic<std::uint32_t> names_used;
  std::atomic<std::uint64_t> homeless;  // events of threads that found no slot
};
static_assert(sizeof(RingHeader) <= kRingHeaderBytes);

struct RingName {
  std::atomic<std::uint32_t> ready;
  char text[kRingNameBytes - 4];
};
static_assert(sizeof(RingName) == kRingNameBytes);

struct RingSlot {
  std::atomic<std::uint64_t> written;  // events ever written
  std::atomic<std::uint32_t> state;    // 0 never used, 1 owned by a live thread, 2 free again
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint32_t> tid;
  std::uint32_t reserved;
  char thread_name[16];
  char padding[24];
};
static_assert(sizeof(RingSlot) == 64);

struct RingOptions {
  std::uint32_t names = 1024;
  std::uint32_t slots = 64;
  std::uint32_t capacity = 1U << 14;  // 512 KiB a thread; pages that no event touched cost nothing
};

// A mapping of a ring file. Threads: may be shared.
class Ring {
 public:
  // A new file, sparse and zero. Errors: kExists, kNoSpace, kIo.
  static Result<std::shared_ptr<Ring>> create(const std::string& path, RingOptions options = {});
  // Errors: kNotFound; kCorrupt when the magic, the sizes or the length are not those of a ring.
  static Result<std::shared_ptr<Ring>> open(const std::string& path);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  RingHeader& header() const { return *static_cast<RingHeader*>(base_); }
  RingName& name(std::uint32_t index) const;
  RingSlot& slot(std::uint32_t index) const;
  // The eight-byte words of event `n` of a slot.
  std::atomic<std::uint64_t>* event_words(std::uint32_t slot, std::uint64_t n) const;

  std::string name_text(std::uint32_t index) const;  // "" when the entry is not ready
  // The entry for `text`, made if absent; 0 when the table is full. Two processes may make one text twice.
  std::uint32_t intern(std::string_view text) const;
  // A slot for the calling thread, or -1.
  int claim_slot() const;

 private:
  Ring(void* base, std::size_t bytes) : base_(base), bytes_(bytes) {}
  void* base_;
  std::size_t bytes_;
};

// Takes what has been written since the last call. Threads: one owner.
class RingReader {
 public:
  explicit RingReader(std::shared_ptr<Ring> ring);

  // Calls `sink` with each event, slot by slot, in order of writing within a slot. Returns the events lost to
  // overwriting (or to a lack of slots) since the last call.
  std::uint64_t drain(const std::function<void(const Event&)>& sink);

  const Ring& ring() const { return *ring_; }

 private:
  std::uint64_t drain_slot(std::uint32_t slot, const std::function<void(const Event&)>& sink);

  const std::shared_ptr<Ring> ring_;
  std::vector<std::uint64_t> next_;
  std::uint64_t homeless_seen_ = 0;
};

}  // namespace stoker
