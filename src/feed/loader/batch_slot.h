// Memory of batches: made when needed, used again, returned by whoever holds a batch last.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "stoker/base/mutex.h"
#include "stoker/feed/image.h"

namespace stoker::feed {

struct BatchShape {
  std::size_t batch_size = 0;
  int height = 0;
  int width = 0;
  PixelType type = PixelType::kFloat32Nchw;

  std::size_t sample_bytes() const {
    const std::size_t values = std::size_t{3} * static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
    return values * (type == PixelType::kFloat32Nchw ? sizeof(float) : sizeof(std::uint8_t));
  }
  friend bool operator==(const BatchShape&, const BatchShape&) = default;
};

struct BatchSlot {
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  BatchShape shape;
  std::unique_ptr<std::byte[], Free> images;
  std::vector<std::int64_t> labels;
  std::vector<std::uint64_t> samples;  // as many as the batch has

  std::byte* image(std::size_t k) const { return images.get() + k * shape.sample_bytes(); }
};

// Threads: may be shared; slots may come back from any thread, also after the pool is gone.
class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  explicit SlotPool(std::size_t keep) : keep_(keep) {}

  // A slot of `shape`, or null when there is no memory for one.
  std::shared_ptr<BatchSlot> take(const BatchShape& shape);
  std::size_t made() const;

 private:
  void give_back(std::unique_ptr<BatchSlot> slot);
  std::shared_ptr<BatchSlot> share(std::unique_ptr<BatchSlot> slot);

  const std::size_t keep_;  // unused slots beyond these are freed

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<BatchSlot>> unused_ STOKER_GUARDED_BY(mutex_);
  std::size_t made_ STOKER_GUARDED_BY(mutex_) = 0;
};

}  // namespace stoker::feed
