#include "stoker/feed/loader.h"

#include <unistd.h>

#include <algorithm>

#include "feed/loader/pipeline.h"
#include "stoker/machine/machine.h"

namespace stoker::feed {
namespace {

constexpr std::size_t kProbes = 16;  // pictures looked at where the first ones are bad

// The size of the first readable picture.
Result<std::pair<int, int>> probe_size(const SampleSource& source, const LoaderOptions& options) {
  LoaderCounters counters;
  SampleMaker maker(source, options, counters);
  Result<std::pair<int, int>> size = Error{ErrorCode::kBadInput, "there is no sample"};
  for (std::size_t i = 0; i < std::min(source.size(), kProbes); ++i) {
    size = maker.shown_size(i);
    if (size.ok()) break;
  }
  return size;
}

}  // namespace

int default_threads() { return machine::cpu_facts().usable; }

class Loader::State {
 public:
  State(std::shared_ptr<const SampleSource> source, LoaderOptions options, std::pair<int, int> size)
      : source_(std::move(source)),
        options_(std::move(options)),
        size_(size),
        threads_(options_.threads > 0 ? options_.threads : default_threads()),
        pipeline_(*source_, options_, counters_, threads_) {}

  bool in_child() const { return ::getpid() != owner_; }
  BatchShape shape(std::size_t batch_size) const {
    return {batch_size, size_.first, size_.second, options_.pixels.type};
  }

  const std::shared_ptr<const SampleSource> source_;
  const LoaderOptions options_;
  const std::pair<int, int> size_;
  const int threads_;
  const pid_t owner_ = ::getpid();

  LoaderCounters counters_;
  std::atomic<std::int64_t> wait_ns_{0};
  Pipeline pipeline_;
};

Loader::Loader(std::unique_ptr<State> state) : state_(std::move(state)) {}

Loader::~Loader() {
  // In a forked child the threads do not exist and a lock may be held for ever: nothing there can be torn down.
  if (state_->in_child()) (void)state_.release();
}

Result<std::unique_ptr<Loader>> Loader::create(std::shared_ptr<const SampleSource> source, LoaderOptions options) {
  auto size = options.transform.fixed_size();
  if (!size) {
    const auto probed = probe_size(*source, options);
    if (!probed) return probed.error();
    size = *probed;
  }
  return std::unique_ptr<Loader>(new Loader(std::make_unique<State>(std::move(source), std::move(options), *size)));
}

Status Loader::start(EpochPlan plan) {
  if (state_->in_child())
    return Error{ErrorCode::kUnsupported, "this loader was made before the process forked; its threads are not here",
                 "make the loader in the process that uses it"};
  auto shard = Shard::create(plan.order->length(), plan.start, plan.shard);
  if (!shard) return shard.error();
  const BatchShape shape = state_->shape(plan.shard.batch_size);
  return state_->pipeline_.start(std::move(plan), *shard, shape);
}

Result<Next> Loader::next(std::chrono::milliseconds timeout) {
  if (state_->in_child()) return Error{ErrorCode::kUnsupported, "this loader was made before the process forked"};
  const auto begin = std::chrono::steady_clock::now();
  auto given = state_->pipeline_.next(timeout);
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
  state_->wait_ns_.fetch_add(took.count(), std::memory_order_relaxed);
  return given;
}

void Loader::stop() {
  if (!state_->in_child()) state_->pipeline_.stop();
}

LoaderStats Loader::stats() const {
  LoaderStats stats;
  stats.threads = state_->threads_;
  stats.wait = std::chrono::nanoseconds(state_->wait_ns_.load(std::memory_order_relaxed));
  stats.batches = state_->pipeline_.batches_given();
  stats.slots = state_->pipeline_.slots_made();
  state_->counters_.fill(stats);
  return stats;
}

std::pair<int, int> Loader::size() const { return state_->size_; }

}  // namespace stoker::feed
