#include "stoker/base/events.h"

#include <pthread.h>

#include <bit>
#include <cstdlib>
#include <memory>

#include "base/ring.h"
#include "stoker/base/clock.h"
#include "stoker/base/mutex.h"

namespace stoker {

namespace events_detail {
std::atomic<bool> attached{false};
}

namespace {

Mutex g_mutex;
// Rings once attached are kept for ever: a thread may still be writing when another one detaches.
std::vector<std::shared_ptr<Ring>>& g_rings STOKER_GUARDED_BY(g_mutex) = *new std::vector<std::shared_ptr<Ring>>;
std::atomic<const Ring*> g_ring{nullptr};
std::atomic<std::uint32_t> g_generation{0};

// The calling thread's place in the ring; given back when the thread ends.
struct ThreadSlot {
  const Ring* ring = nullptr;
  std::uint32_t generation = 0;
  int slot = -1;

  ~ThreadSlot() { give_back(); }
  void give_back() {
    // A forked child's copy must not free the parent's slot.
    if (slot >= 0 &&
        ring->slot(static_cast<std::uint32_t>(slot)).pid.load() == static_cast<std::uint32_t>(::getpid())) {
      ring->slot(static_cast<std::uint32_t>(slot)).state.store(2, std::memory_order_release);
    }
    slot = -1;
  }
};
thread_local ThreadSlot t_slot;

void detach_in_child() { events_detail::attached.store(false); }

}  // namespace

void events_detail::write(std::uint32_t name, EventKind kind, double value) {
  const Ring* ring = g_ring.load(std::memory_order_acquire);
  if (ring == nullptr) return;
  ThreadSlot& mine = t_slot;
  const std::uint32_t generation = g_generation.load(std::memory_order_relaxed);
  if (mine.generation != generation) {
    mine.give_back();
    mine.ring = ring;
    mine.slot = ring->claim_slot();
    mine.generation = generation;
  }
  if (mine.slot < 0) {
    ring->header().homeless.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const auto index = static_cast<std::uint32_t>(mine.slot);
  Event event;
  event.time_ns = static_cast<std::uint64_t>(Clock::real().monotonic().count());
  event.name = name;
  event.thread = index;
  event.kind = kind;
  event.value = value;
  struct Words {
    std::uint64_t word[4];
  };
  const auto words = std::bit_cast<Words>(event);

  RingSlot& slot = ring->slot(index);
  const std::uint64_t n = slot.written.load(std::memory_order_relaxed);
  auto* target = ring->event_words(index, n);
  std::atomic_thread_fence(std::memory_order_release);  // a reader that sees a new word also sees the last `written`
  for (int i = 0; i < 4; ++i) target[i].store(words.word[i], std::memory_order_relaxed);
  slot.written.store(n + 1, std::memory_order_release);
}

Status events_attach(const std::string& path) {
  auto ring = Ring::open(path);
  if (!ring) return ring.error();
  static const int registered = ::pthread_atfork(nullptr, nullptr, &detach_in_child);
  (void)registered;
  MutexLock lock(g_mutex);
  g_rings.push_back(*ring);
  g_generation.fetch_add(1);
  g_ring.store(ring->get(), std::memory_order_release);
  events_detail::attached.store(true);
  return {};
}

Status events_attach_from_environment() {
  const char* path = std::getenv("STOKER_RING");
  if (path == nullptr || *path == '\0') return {};
  return events_attach(path);
}

void events_detach() { events_detail::attached.store(false); }

std::uint32_t event_name(std::string_view name) {
  const Ring* ring = g_ring.load(std::memory_order_acquire);
  if (ring == nullptr || !events_on()) return 0;
  MutexLock lock(g_mutex);
  return ring->intern(name);
}

std::uint32_t EventName::id() {
  const std::uint64_t generation = g_generation.load(std::memory_order_relaxed);
  const std::uint64_t known = cached_.load(std::memory_order_relaxed);
  if (known >> 32 == generation) return static_cast<std::uint32_t>(known);
  const std::uint32_t id = event_name(text_);
  cached_.store(generation << 32 | id, std::memory_order_relaxed);
  return id;
}

}  // namespace stoker
