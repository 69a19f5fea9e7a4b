#include "feed/loader/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "stoker/base/threads.h"

namespace stoker::feed {

struct Pipeline::OpenBatch {
  std::uint64_t number = 0;
  std::shared_ptr<BatchSlot> slot;
  std::size_t issued = 0;
  std::size_t finished = 0;
  std::vector<bool> filled;      // by place
  std::size_t failed_place = 0;  // of `failure`
  std::optional<Error> failure;  // of the first bad place
  bool ready = false;

  std::size_t length() const { return filled.size(); }
};

struct Pipeline::Iteration {
  EpochPlan plan;
  Shard shard;
  BatchShape shape;
  std::uint64_t next_batch = 0;
  bool failing = false;
  std::optional<Error> failure;  // as given by next()
  std::deque<std::shared_ptr<OpenBatch>> open;
};

struct Pipeline::Ticket {
  std::shared_ptr<Iteration> iteration;
  std::shared_ptr<OpenBatch> batch;
  std::size_t place = 0;
};

namespace {

// Moves filled places together, in their order.
void close_gaps(BatchSlot& slot, const std::vector<bool>& filled) {
  std::size_t to = 0;
  for (std::size_t from = 0; from < filled.size(); ++from) {
    if (!filled[from]) continue;
    if (to != from) {
      std::copy_n(slot.image(from), slot.shape.sample_bytes(), slot.image(to));
      slot.labels[to] = slot.labels[from];
      slot.samples[to] = slot.samples[from];
    }
    ++to;
  }
  slot.labels.resize(to);
  slot.samples.resize(to);
}

}  // namespace

Pipeline::Pipeline(const SampleSource& source, const LoaderOptions& options, LoaderCounters& counters, int threads)
    : source_(source),
      options_(options),
      counters_(counters),
      threads_wanted_(static_cast<std::size_t>(std::max(1, threads))),
      ahead_(options.ahead > 0 ? static_cast<std::size_t>(options.ahead) : 3),
      pool_(std::make_shared<SlotPool>(ahead_ + 2)) {}

Status Pipeline::start(EpochPlan plan, Shard shard, BatchShape shape) {
  MutexLock lock(mutex_);
  if (stopped_) return Error{ErrorCode::kCancelled, "the loader is closed", "make a new one"};
  current_ = std::make_shared<Iteration>(Iteration{std::move(plan), shard, shape, 0, false, {}, {}});
  start_threads();
  room_.notify_all();
  return {};
}

void Pipeline::start_threads() {
  while (threads_.size() < threads_wanted_) {
    const std::size_t number = threads_.size();
    threads_.emplace_back([this, number](std::stop_token stop) {
      set_thread_name(fmt::format("stoker-load-{}", number));
      lower_thread_priority(options_.lower_priority);
      work(std::move(stop));
    });
  }
}

void Pipeline::stop() {
  std::vector<std::jthread> ending;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    current_.reset();
    ending.swap(threads_);
    for (std::jthread& thread : ending) thread.request_stop();
    room_.notify_all();
    ready_.notify_all();
  }
  ending.clear();  // joins, with no lock held
}

void Pipeline::work(std::stop_token stop) {
  SampleMaker maker(source_, options_, counters_);
  while (const auto ticket = take_ticket(stop)) {
    const Iteration& iteration = *ticket->iteration;
    const std::uint64_t position = iteration.shard.position(ticket->batch->number, ticket->place);
    finish(*ticket, maker.make(iteration.plan, position, *ticket->batch->slot, ticket->place));
  }
}

bool Pipeline::may_begin_batch() const {
  return !current_->failing && current_->next_batch < current_->shard.batches() && current_->open.size() < ahead_;
}

bool Pipeline::has_ticket() const {
  if (!current_) return false;
  const auto& open = current_->open;
  return (!open.empty() && open.back()->issued < open.back()->length()) || may_begin_batch();
}

void Pipeline::begin_batch() {
  auto batch = std::make_shared<OpenBatch>();
  batch->number = current_->next_batch++;
  batch->filled.resize(current_->shard.batch_length(batch->number));
  batch->slot = pool_->take(current_->shape);
  if (!batch->slot) {
    batch->failure = Error{
        ErrorCode::kIo,
        fmt::format("no memory for a batch of {} bytes", current_->shape.batch_size * current_->shape.sample_bytes()),
        "use a smaller batch_size"};
    batch->issued = batch->length();
    batch->ready = current_->failing = true;
    ready_.notify_all();
  }
  current_->open.push_back(std::move(batch));
}

std::optional<Pipeline::Ticket> Pipeline::take_ticket(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (true) {
    room_.wait(lock, stop, [this]() STOKER_REQUIRES(mutex_) { return has_ticket(); });
    if (stop.stop_requested() || !has_ticket()) return std::nullopt;
    if (current_->open.empty() || current_->open.back()->issued == current_->open.back()->length()) begin_batch();
    const std::shared_ptr<OpenBatch>& batch = current_->open.back();
    if (batch->issued < batch->length()) return Ticket{current_, batch, batch->issued++};
  }
}

void Pipeline::finish(const Ticket& ticket, Result<bool> made) {
  OpenBatch& batch = *ticket.batch;
  {
    MutexLock lock(mutex_);
    batch.filled[ticket.place] = made.ok() && *made;
    if (!made.ok() && (!batch.failure || ticket.place < batch.failed_place)) {
      batch.failure = made.error();
      batch.failed_place = ticket.place;
      ticket.iteration->failing = true;
    }
    if (++batch.finished < batch.length()) return;
  }
  close_gaps(*batch.slot, batch.filled);  // the last of the batch's threads: nobody else writes there now
  MutexLock lock(mutex_);
  batch.ready = true;
  ready_.notify_all();
}

bool Pipeline::answer_ready() const {
  if (stopped_ || !current_ || current_->failure) return true;
  const auto& open = current_->open;
  return open.empty() ? current_->next_batch >= current_->shard.batches() : open.front()->ready;
}

Result<Next> Pipeline::answer() {
  if (stopped_) return Error{ErrorCode::kCancelled, "the loader is closed", "make a new one"};
  if (!current_) return Next{Next::State::kEnd, {}, 0};
  if (current_->failure) return *current_->failure;
  if (current_->open.empty()) return Next{Next::State::kEnd, {}, 0};
  const std::shared_ptr<OpenBatch> batch = std::move(current_->open.front());
  current_->open.pop_front();
  room_.notify_all();
  if (batch->failure) {
    current_->failure = batch->failure;
    return *batch->failure;
  }
  ++given_;
  return Next{Next::State::kBatch, Batch(std::move(batch->slot)), batch->number + 1};
}

Result<Next> Pipeline::next(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (true) {
    const bool ready = ready_.wait_until(lock, deadline, [this]() STOKER_REQUIRES(mutex_) { return answer_ready(); });
    if (!ready) return Next{};
    auto given = answer();
    // A batch of bad samples only is passed over.
    if (given.ok() && given->state == Next::State::kBatch && given->batch.size() == 0) continue;
    return given;
  }
}

std::uint64_t Pipeline::batches_given() const {
  MutexLock lock(mutex_);
  return given_;
}

}  // namespace stoker::feed
