// std::mutex under the names that Clang's thread-safety analysis reads. Private to Stoker's sources.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#if defined(__clang__)
#define STOKER_ANNOTATE(x) __attribute__((x))
#else
#define STOKER_ANNOTATE(x)
#endif
#define STOKER_CAPABILITY(x) STOKER_ANNOTATE(capability(x))
#define STOKER_SCOPED_CAPABILITY STOKER_ANNOTATE(scoped_lockable)
#define STOKER_GUARDED_BY(x) STOKER_ANNOTATE(guarded_by(x))
#define STOKER_REQUIRES(...) STOKER_ANNOTATE(requires_capability(__VA_ARGS__))
#define STOKER_ACQUIRE(...) STOKER_ANNOTATE(acquire_capability(__VA_ARGS__))
#define STOKER_RELEASE(...) STOKER_ANNOTATE(release_capability(__VA_ARGS__))
#define STOKER_EXCLUDES(...) STOKER_ANNOTATE(locks_excluded(__VA_ARGS__))

namespace stoker {

class STOKER_CAPABILITY("mutex") Mutex {
 public:
  void lock() STOKER_ACQUIRE() { mutex_.lock(); }
  void unlock() STOKER_RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class STOKER_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) STOKER_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() STOKER_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // For std::condition_variable_any, which unlocks while it waits.
  void lock() STOKER_ACQUIRE() { mutex_.lock(); }
  void unlock() STOKER_RELEASE() { mutex_.unlock(); }

 private:
  Mutex& mutex_;
};

}  // namespace stoker
