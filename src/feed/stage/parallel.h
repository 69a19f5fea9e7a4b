// n pieces of work over a few threads; the first failure ends it. Private to the room.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "stoker/base/mutex.h"
#include "stoker/base/status.h"

namespace stoker::feed {

// Calls `one(i)` for each i in [0, n), in rising order of start. Once a call fails, no new one starts; its error is the
// answer. Blocks until all threads have ended.
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
  for (int i = 1; i < threads && static_cast<std::size_t>(i) < n; ++i) others.emplace_back(run);
  run();
  others.clear();  // joins
  return first;
}

}  // namespace stoker::feed
