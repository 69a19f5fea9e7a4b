// The threads of a loader, and the rules they keep.
//
//  1. Order.   Batches come out by number, whatever order the threads finish in. What a sample looks like depends
//              on (seed, epoch, position) alone, never on the thread or the time.
//  2. Bound.   At most `ahead` batches are open: being made, or made and not yet asked for. A thread that finds no
//              sample to make waits.
//  3. Bad.     Under kSkip a batch comes without its bad samples, and does not come at all when all of them are
//              bad; later samples stay where they are. Under kSubstitute another sample takes the place.
//  4. Failure. Under kError, next() gives every batch before the one with the bad sample, then the error of that
//              batch's first bad sample, and that again until start(). No batch is begun once a failure is known.
//  5. End.     After the last batch next() says kEnd, again and again, until start().
//  6. Leaving. start() in the middle of an iteration leaves it. Threads finish the sample they are at and throw it
//              away; nobody waits for them.
//  7. Stop.    stop() wakes every waiter: next() gives kCancelled from then on. Each thread ends after at most the
//              sample it is at; stop() returns when all have. It is final.
//  8. Memory.  A batch belongs to whoever holds it. Its slot goes back to the pool when the last holder lets go,
//              from any thread, also after the loader's end; while consumers hold many, the pool grows.
#pragma once

#include <condition_variable>
#include <deque>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "feed/loader/batch_slot.h"
#include "feed/loader/sample_maker.h"
#include "stoker/base/mutex.h"
#include "stoker/feed/loader.h"

namespace stoker::feed {

class Pipeline {
 public:
  // `source` and `options` are kept by reference and must outlive the pipeline. No thread starts here.
  Pipeline(const SampleSource& source, const LoaderOptions& options, LoaderCounters& counters, int threads);
  ~Pipeline() { stop(); }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  Status start(EpochPlan plan, Shard shard, BatchShape shape);
  Result<Next> next(std::chrono::milliseconds timeout);
  void stop();

  std::uint64_t batches_given() const;
  std::uint64_t slots_made() const { return pool_->made(); }

 private:
  struct OpenBatch;
  struct Iteration;
  struct Ticket;

  void work(std::stop_token stop);
  std::optional<Ticket> take_ticket(const std::stop_token& stop);
  bool may_begin_batch() const STOKER_REQUIRES(mutex_);
  bool has_ticket() const STOKER_REQUIRES(mutex_);
  void begin_batch() STOKER_REQUIRES(mutex_);
  void finish(const Ticket& ticket, Result<bool> made);
  bool answer_ready() const STOKER_REQUIRES(mutex_);
  Result<Next> answer() STOKER_REQUIRES(mutex_);
  void start_threads() STOKER_REQUIRES(mutex_);

  const SampleSource& source_;
  const LoaderOptions& options_;
  LoaderCounters& counters_;
  const std::size_t threads_wanted_;
  const std::size_t ahead_;
  const std::shared_ptr<SlotPool> pool_;

  mutable Mutex mutex_;
  std::condition_variable_any room_;   // a ticket may be there
  std::condition_variable_any ready_;  // an answer for next() may be there
  std::shared_ptr<Iteration> current_ STOKER_GUARDED_BY(mutex_);
  bool stopped_ STOKER_GUARDED_BY(mutex_) = false;
  std::uint64_t given_ STOKER_GUARDED_BY(mutex_) = 0;
  std::vector<std::jthread> threads_ STOKER_GUARDED_BY(mutex_);  // last: stops before all that it uses
};

}  // namespace stoker::feed
