#include "feed/loader/batch_slot.h"

#include "stoker/feed/loader.h"

namespace stoker::feed {
namespace {

constexpr std::size_t kAlignment = 64;

std::unique_ptr<BatchSlot> make_slot(const BatchShape& shape) {
  const std::size_t bytes = shape.batch_size * shape.sample_bytes();
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (memory == nullptr) return nullptr;
  auto slot = std::make_unique<BatchSlot>();
  slot->shape = shape;
  slot->images.reset(memory);
  slot->labels.resize(shape.batch_size);
  slot->samples.resize(shape.batch_size);
  return slot;
}

}  // namespace

std::shared_ptr<BatchSlot> SlotPool::take(const BatchShape& shape) {
  {
    MutexLock lock(mutex_);
    while (!unused_.empty()) {
      auto slot = std::move(unused_.back());
      unused_.pop_back();
      if (slot->shape == shape) return share(std::move(slot));
    }
  }
  auto slot = make_slot(shape);
  if (!slot) return nullptr;
  MutexLock lock(mutex_);
  ++made_;
  return share(std::move(slot));
}

std::shared_ptr<BatchSlot> SlotPool::share(std::unique_ptr<BatchSlot> slot) {
  return {slot.release(), [pool = weak_from_this()](BatchSlot* back) {
            std::unique_ptr<BatchSlot> owned(back);
            if (const auto alive = pool.lock()) alive->give_back(std::move(owned));
          }};
}

void SlotPool::give_back(std::unique_ptr<BatchSlot> slot) {
  slot->labels.resize(slot->shape.batch_size);
  slot->samples.resize(slot->shape.batch_size);
  MutexLock lock(mutex_);
  if (unused_.size() < keep_) unused_.push_back(std::move(slot));
}

std::size_t SlotPool::made() const {
  MutexLock lock(mutex_);
  return made_;
}

std::size_t Batch::size() const { return slot_->samples.size(); }
int Batch::height() const { return slot_->shape.height; }
int Batch::width() const { return slot_->shape.width; }
PixelType Batch::type() const { return slot_->shape.type; }
void* Batch::images() const { return slot_->images.get(); }
std::int64_t* Batch::labels() const { return slot_->labels.data(); }
std::span<const std::uint64_t> Batch::samples() const { return slot_->samples; }

}  // namespace stoker::feed
