// Where a save's bytes are copied before the call returns: memory that is mapped and touched once and used again, since
// copying into fresh memory is several times slower.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "stoker/base/status.h"

namespace stoker::save {

// Runs `work(i)` for every i below `count` on up to `threads` threads, the calling one among them.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

struct Copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t size = 0;
};

// All of `copies`, in pieces so that one big tensor does not keep one thread busy and the others idle.
void copy_all(std::span<const Copy> copies, int threads);

// Page-aligned anonymous memory that grows and never shrinks.
class StagingBuffer {
 public:
  StagingBuffer() = default;
  ~StagingBuffer();
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;

  // At least `size` bytes, all of them touched; what was inside is gone when it had to grow. Errors: kNoSpace (memory).
  Status reserve(std::size_t size, int threads);
  std::byte* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }

 private:
  void release();

  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace stoker::save
