// The events that the analyses need, 40 bytes each, in the order of the file (which is not the order of time).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stoker::watch::kineto {

enum class Kind : std::uint8_t {
  kOther,
  kKernel,
  kMemcpy,
  kMemset,
  kRuntime,     // a call into CUDA's or HIP's runtime or driver
  kOp,          // an operator of the framework
  kAnnotation,  // record_function, profiler steps
  kMemory,      // the allocator's state after an allocation or a release
};

inline bool is_gpu_work(Kind kind) { return kind == Kind::kKernel || kind == Kind::kMemcpy || kind == Kind::kMemset; }

constexpr std::int64_t kNoCorrelation = -1;

struct Event {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;               // kMemory: bytes allocated
  std::int64_t correlation = kNoCorrelation;  // kMemory: bytes reserved
  std::uint32_t name = 0;
  std::uint32_t lane = 0;  // (device, stream) or (process, thread); kMemory: (device, 0)
  Kind kind = Kind::kOther;

  std::int64_t end_ns() const { return start_ns + duration_ns; }
};
static_assert(sizeof(Event) == 40);

// Adds without overflow: damaged traces may hold any number.
inline void add_ns(std::int64_t& into, std::int64_t value) {
  if (__builtin_add_overflow(into, value, &into)) into = INT64_MAX;
}

// Grows in blocks, so that no copy and no slack doubles its size.
class EventTable {
 public:
  std::size_t size() const { return size_; }
  void push(const Event& event) {
    if (size_ % kBlock == 0) blocks_.push_back(std::make_unique<Event[]>(kBlock));
    blocks_.back()[size_ % kBlock] = event;
    ++size_;
  }
  const Event& operator[](std::size_t i) const { return blocks_[i / kBlock][i % kBlock]; }
  std::size_t bytes() const { return blocks_.size() * kBlock * sizeof(Event); }

 private:
  static constexpr std::size_t kBlock = 4096;
  std::vector<std::unique_ptr<Event[]>> blocks_;
  std::size_t size_ = 0;
};

// Each distinct name once.
class Names {
 public:
  explicit Names(std::size_t max_bytes) : max_bytes_(max_bytes) {}
  // Past the limit every new name becomes one and the same.
  std::uint32_t id(std::string_view name) {
    if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
    if (bytes_ + name.size() > max_bytes_) {
      full_ = true;
      name = "(names past the limit)";
      if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
    }
    bytes_ += name.size() + kOverhead;
    texts_.emplace_back(name);
    const auto id = static_cast<std::uint32_t>(texts_.size() - 1);
    ids_.emplace(texts_.back(), id);
    return id;
  }
  const std::string& operator[](std::uint32_t id) const { return texts_[id]; }
  std::size_t size() const { return texts_.size(); }
  std::size_t bytes() const { return bytes_; }
  bool full() const { return full_; }

 private:
  static constexpr std::size_t kOverhead = 96;  // the string, the hash table's node
  const std::size_t max_bytes_;
  std::deque<std::string> texts_;  // does not move them
  std::unordered_map<std::string_view, std::uint32_t> ids_;
  std::size_t bytes_ = 0;
  bool full_ = false;
};

// Pairs of numbers, numbered as they come.
class Lanes {
 public:
  using Lane = std::pair<std::int64_t, std::int64_t>;
  std::uint32_t id(Lane lane) {
    if (lane == last_ && !lanes_.empty()) return last_id_;
    const auto [place, is_new] = ids_.emplace(lane, static_cast<std::uint32_t>(lanes_.size()));
    if (is_new) lanes_.push_back(lane);
    last_ = lane;
    last_id_ = place->second;
    return last_id_;
  }
  const Lane& operator[](std::uint32_t id) const { return lanes_[id]; }
  std::size_t size() const { return lanes_.size(); }

 private:
  struct Hash {
    std::size_t operator()(const Lane& lane) const {
      return std::hash<std::int64_t>()(static_cast<std::int64_t>(static_cast<std::uint64_t>(lane.first) * 1000003U)) ^
             std::hash<std::int64_t>()(lane.second);
    }
  };
  std::vector<Lane> lanes_;
  std::unordered_map<Lane, std::uint32_t, Hash> ids_;
  Lane last_;
  std::uint32_t last_id_ = 0;
};

}  // namespace stoker::watch::kineto
