// Which sample comes at which position of an epoch: a function of (seed, epoch, position), computed when asked for, so
// that a billion samples cost no list and going on in the middle of an epoch is a seek.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stoker/base/status.h"

namespace stoker::feed {

enum class OrderKind {
  kAsGiven,   // the items in their own order
  kShuffle,   // each item once, in an order keyed by (seed, epoch)
  kWeighted,  // drawn with replacement, in proportion to `weights`
};

struct OrderOptions {
  OrderKind kind = OrderKind::kAsGiven;
  std::uint64_t seed = 0;
  std::uint64_t population = 0;  // samples in the source; an item is a number below it
  // Items to take from, in their own order (a subset, or a list with repeats). Null: all of the population.
  std::shared_ptr<const std::vector<std::uint64_t>> items = nullptr;
  // kWeighted: one an item, not negative, not all zero.
  std::shared_ptr<const std::vector<double>> weights = nullptr;
  std::uint64_t draws = 0;  // kWeighted: positions in an epoch; 0: as many as there are items
};

// One epoch's order over all ranks.
// Threads: const, may be shared.
class Order {
 public:
  // Errors: kBadInput (nothing to draw from; an item outside the population; weights that do not fit).
  static Result<Order> create(OrderOptions options);

  // Positions in an epoch.
  std::uint64_t length() const { return length_; }
  // The sample at `position` < length().
  std::uint64_t at(std::uint64_t epoch, std::uint64_t position) const;
  std::uint64_t seed() const { return options_.seed; }

 private:
  explicit Order(OrderOptions options) : options_(std::move(options)) {}

  OrderOptions options_;
  std::uint64_t items_ = 0;
  std::uint64_t length_ = 0;
  std::shared_ptr<const std::vector<double>> cumulative_;  // of the weights
};

struct ShardOptions {
  std::uint64_t batch_size = 1;  // of one rank
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  bool drop_last = false;
};

// One rank's share of an epoch that goes on at `start`, the number of samples drawn by all ranks together before.
//
// Rank r takes positions start + r, start + r + world_size, …: the shares are disjoint, all ranks get the same number
// of samples and of batches, and what is drawn is always a beginning of the order, so that a stopped epoch can go on
// with another batch size or number of ranks. Where the end does not divide, positions past it begin again at 0
// (as DistributedSampler pads); with drop_last the rest is left out.
class Shard {
 public:
  // Errors: kBadInput (batch size or world size 0, rank out of range).
  static Result<Shard> create(std::uint64_t length, std::uint64_t start, ShardOptions options);

  std::uint64_t batches() const { return batches_; }
  std::uint64_t batch_length(std::uint64_t batch) const;
  // The global position of item `k` of `batch`; may lie past the epoch's length (then: modulo it).
  std::uint64_t position(std::uint64_t batch, std::uint64_t k) const;
  // Samples drawn by all ranks when `batches` of this shard are done; at most the epoch's length.
  std::uint64_t drawn_after(std::uint64_t batches) const;

 private:
  Shard(std::uint64_t length, std::uint64_t start, ShardOptions options);

  std::uint64_t length_;
  std::uint64_t start_;
  ShardOptions options_;
  std::uint64_t samples_;  // of this rank
  std::uint64_t batches_;
};

}  // namespace stoker::feed
