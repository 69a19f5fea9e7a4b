// Threads: a name, a priority, and a bounded queue that every wait can be called away from.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "stoker/base/mutex.h"

namespace stoker {

// Names the calling thread for top, gdb and the recorder; cut to 15 bytes.
void set_thread_name(const std::string& name);

// Lowers the calling thread's own priority by `steps` (nice values are per thread on Linux). Best effort.
void lower_thread_priority(int steps);

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
