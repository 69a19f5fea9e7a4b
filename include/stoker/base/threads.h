// Threads: a name, a priority, work shared out over a few, and a bounded queue that every wait can be called away from.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "stoker/base/mutex.h"
#include "stoker/base/status.h"

namespace stoker {

// Names the calling thread for top, gdb and the recorder; cut to 15 bytes.
void set_thread_name(const std::string& name);

// Lowers the calling thread's own priority by `steps` (nice values are per thread on Linux). Best effort.
void lower_thread_priority(int steps);

// Calls `one(i)`, which returns a Status, for each i in [0, n), in rising order of start, on the calling thread and up
// to `threads - 1` others; on fewer where the system gives no more. Once a call fails, no new one starts, and its error
// is the answer. Blocks until all have ended.
template <typename One>
Status for_each_parallel(std::size_t n, int threads, One one) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  Mutex mutex;
  Status first;
  const auto run = [&]() {
    for (std::size_t i = next++; i < n && !failed; i = next++) {
      Status status = one(i);
      if (status) continue;
      const MutexLock lock(mutex);
      if (!failed.exchange(true)) first = std::move(status);
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads && static_cast<std::size_t>(i) < n; ++i) {
    try {
      others.emplace_back(run);
    } catch (const std::system_error&) {
      break;
    }
  }
  run();
  others.clear();  // joins
  return first;
}

// First in, first out, at most `capacity` items.
// Threads: any number on either side. Blocks: push() while full, pop() while empty, until asked to stop or closed.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  // False when stopped or closed; the item is then dropped.
  bool push(T item, std::stop_token stop = {}) {
    MutexLock lock(mutex_);
    changed_.wait(lock, stop, [this]() STOKER_REQUIRES(mutex_) { return closed_ || items_.size() < capacity_; });
    if (closed_ || stop.stop_requested() || items_.size() >= capacity_) return false;
    items_.push_back(std::move(item));
    changed_.notify_all();
    return true;
  }

  // Nothing when stopped, or when closed and empty.
  std::optional<T> pop(std::stop_token stop = {}) {
    MutexLock lock(mutex_);
    changed_.wait(lock, stop, [this]() STOKER_REQUIRES(mutex_) { return closed_ || !items_.empty(); });
    if (items_.empty() || stop.stop_requested()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    changed_.notify_all();
    return item;
  }

  // No more items come in; those inside can still be popped.
  void close() {
    MutexLock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  const std::size_t capacity_;

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<T> items_ STOKER_GUARDED_BY(mutex_);
  bool closed_ STOKER_GUARDED_BY(mutex_) = false;
};

}  // namespace stoker
