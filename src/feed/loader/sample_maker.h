// One sample, from its position in the epoch to pixels in its place of a batch. Each thread owns a maker.
#pragma once

#include <array>
#include <atomic>
#include <map>

#include "feed/loader/batch_slot.h"
#include "stoker/base/mutex.h"
#include "stoker/feed/loader.h"

namespace stoker::feed {

// What all makers of a loader share: figures, and the list of bad files.
class LoaderCounters {
 public:
  std::atomic<std::uint64_t> samples{0};
  std::atomic<std::uint64_t> bytes_read{0};
  std::atomic<std::int64_t> read_ns{0};
  std::atomic<std::int64_t> decode_ns{0};

  void add_bad(const std::string& path, const std::string& why);
  void fill(LoaderStats& stats) const;

 private:
  mutable Mutex mutex_;
  std::uint64_t bad_ STOKER_GUARDED_BY(mutex_) = 0;
  std::map<std::string, BadFile> bad_files_ STOKER_GUARDED_BY(mutex_);
};

class SampleMaker {
 public:
  SampleMaker(const SampleSource& source, const LoaderOptions& options, LoaderCounters& counters);

  // Fills place `k` of `slot` with the sample at `position`. True: filled; false: left out by OnError::kSkip.
  // What is written depends on the order, the epoch and the position alone.
  Result<bool> make(const EpochPlan& plan, std::uint64_t position, BatchSlot& slot, std::size_t k);

  // {height, width} that `sample` has after the transform.
  Result<std::pair<int, int>> shown_size(std::uint64_t sample);

 private:
  Status render(const EpochPlan& plan, std::uint64_t position, std::uint64_t sample, BatchSlot& slot, std::size_t k);
  Status decode(const EpochPlan& plan, std::uint64_t position, const BatchShape& shape, void* out);
  Result<bool> substitute(const EpochPlan& plan, std::uint64_t position, BatchSlot& slot, std::size_t k);

  const SampleSource& source_;
  const LoaderOptions& options_;
  LoaderCounters& counters_;
  ImageDecoder decoder_;
  FileBuffer file_;
  // The last sample was no bad file, but the transform gives pictures of several sizes: the user's to mend, whatever
  // the policy for bad files is.
  bool wrong_size_ = false;
};

}  // namespace stoker::feed
