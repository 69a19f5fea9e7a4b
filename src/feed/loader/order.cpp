#include "stoker/feed/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "feed/loader/permutation.h"
#include "feed/loader/random.h"

namespace stoker::feed {
namespace {

Status check_items(const OrderOptions& options) {
  if (!options.items) return {};
  for (const std::uint64_t item : *options.items)
    if (item >= options.population)
      return Error{ErrorCode::kBadInput,
                   fmt::format("the order names sample {}, but there are {}", item, options.population),
                   "samples are numbered from 0"};
  return {};
}

// Running sums, so that a draw is a binary search.
Result<std::vector<double>> cumulate(const std::vector<double>& weights, std::uint64_t items) {
  if (weights.size() != items)
    return Error{ErrorCode::kBadInput, fmt::format("{} weights for {} samples", weights.size(), items),
                 "give one weight a sample"};
  std::vector<double> sums(weights.size());
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(weights[i]))
      return Error{ErrorCode::kBadInput, fmt::format("weight {} of sample {} is not a number ≥ 0", weights[i], i)};
    sums[i] = sum += weights[i];
  }
  if (!(sum > 0) || !std::isfinite(sum))
    return Error{ErrorCode::kBadInput, fmt::format("the weights sum to {}", sum), "at least one must be above 0"};
  return sums;
}

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace

Result<Order> Order::create(OrderOptions options) {
  STOKER_TRY(check_items(options));
  Order order(std::move(options));
  const OrderOptions& o = order.options_;
  order.items_ = o.items ? o.items->size() : o.population;
  order.length_ = o.kind == OrderKind::kWeighted && o.draws > 0 ? o.draws : order.items_;
  if (order.items_ == 0) return Error{ErrorCode::kBadInput, "there is no sample to draw"};
  if (o.kind == OrderKind::kWeighted) {
    if (!o.weights) return Error{ErrorCode::kBadInput, "a weighted order needs weights"};
    auto sums = cumulate(*o.weights, order.items_);
    if (!sums) return sums.error();
    order.cumulative_ = std::make_shared<const std::vector<double>>(*std::move(sums));
  }
  return order;
}

std::uint64_t Order::at(std::uint64_t epoch, std::uint64_t position) const {
  std::uint64_t item = position;
  if (options_.kind == OrderKind::kShuffle) {
    item = Permutation(items_, options_.seed, epoch)(position);
  } else if (options_.kind == OrderKind::kWeighted) {
    const double at = SampleRandom(options_.seed, epoch, position, Purpose::kWeighted).uniform() * cumulative_->back();
    const auto found = std::upper_bound(cumulative_->begin(), cumulative_->end(), at);
    // Rounding may give exactly the sum; the last item with a weight is then meant.
    item = static_cast<std::uint64_t>(
        (found == cumulative_->end() ? std::lower_bound(cumulative_->begin(), found, cumulative_->back()) : found) -
        cumulative_->begin());
  }
  return options_.items ? (*options_.items)[item] : item;
}

Result<Shard> Shard::create(std::uint64_t length, std::uint64_t start, ShardOptions options) {
  if (options.batch_size == 0) return Error{ErrorCode::kBadInput, "batch_size is 0", "give the images of one batch"};
  if (options.world_size == 0 || options.rank >= options.world_size)
    return Error{ErrorCode::kBadInput,
                 fmt::format("rank {} of a world of {} does not exist", options.rank, options.world_size),
                 "ranks count from 0 to world_size − 1"};
  if (start > length)
    return Error{ErrorCode::kBadInput, fmt::format("sample {} lies past the epoch's {}", start, length)};
  return Shard(length, start, options);
}

Shard::Shard(std::uint64_t length, std::uint64_t start, ShardOptions options)
    : length_(length), start_(start), options_(options) {
  const std::uint64_t left = length - start;
  samples_ = options.drop_last ? left / options.world_size : divide_up(left, options.world_size);
  batches_ = options.drop_last ? samples_ / options.batch_size : divide_up(samples_, options.batch_size);
}

std::uint64_t Shard::batch_length(std::uint64_t batch) const {
  return std::min(options_.batch_size, samples_ - batch * options_.batch_size);
}

std::uint64_t Shard::position(std::uint64_t batch, std::uint64_t k) const {
  return start_ + (batch * options_.batch_size + k) * options_.world_size + options_.rank;
}

std::uint64_t Shard::drawn_after(std::uint64_t batches) const {
  if (batches >= batches_) return length_;
  return std::min(length_, start_ + batches * options_.batch_size * options_.world_size);
}

}  // namespace stoker::feed
