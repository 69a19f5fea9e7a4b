// Batches of decoded images, read ahead by threads. The rules for end, failure and stop are numbered in
// src/feed/loader/pipeline.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stoker/base/status.h"
#include "stoker/feed/dataset.h"
#include "stoker/feed/image.h"
#include "stoker/feed/order.h"
#include "stoker/feed/transform.h"

namespace stoker::feed {

enum class OnError {
  kError,       // the batch's next() fails and names the file
  kSkip,        // the batch comes without the sample; later samples do not move
  kSubstitute,  // another sample of the same order takes its place, chosen by the sample's own key
};

struct LoaderOptions {
  TransformPlan transform;
  PixelOptions pixels;
  DecoderOptions decoder;
  OnError on_error = OnError::kError;
  int threads = 0;         // 0: the CPUs that this process may really use
  int ahead = 0;           // batches made before they are asked for; 0: 3
  int lower_priority = 5;  // nice steps below the trainee, so that its threads keep their core
};

// One iteration over the data, or the rest of one.
struct EpochPlan {
  std::shared_ptr<const Order> order;
  std::uint64_t epoch = 0;
  std::uint64_t start = 0;  // samples drawn over all ranks before
  ShardOptions shard;
};

struct BatchSlot;

// Images and labels of one batch.
// Lifetime: the memory is this object's and its copies' for as long as one of them lives, also after the loader's end;
// then it goes back to the loader.
class Batch {
 public:
  Batch() = default;
  explicit Batch(std::shared_ptr<BatchSlot> slot) : slot_(std::move(slot)) {}

  std::size_t size() const;
  int height() const;
  int width() const;
  PixelType type() const;
  // size × height × width × 3 uint8, or size × 3 × height × width float32; 64-byte aligned.
  void* images() const;
  std::int64_t* labels() const;
  // The source's sample at each place of the batch.
  std::span<const std::uint64_t> samples() const;

 private:
  std::shared_ptr<BatchSlot> slot_;
};

struct BadFile {
  std::string path;
  std::string why;
  std::uint64_t times = 0;
};

// Sums since the loader was made; times are wall time summed over the threads.
struct LoaderStats {
  int threads = 0;
  std::uint64_t samples = 0;  // decoded
  std::uint64_t bytes_read = 0;
  std::chrono::nanoseconds read{0};
  std::chrono::nanoseconds decode{0};  // with crop, resize and normalise, which are one pass with it
  std::chrono::nanoseconds wait{0};    // of the consumer, in next()
  std::uint64_t batches = 0;           // handed out
  std::uint64_t slots = 0;             // batch memories made; more than ahead + 2: the consumer holds many
  std::uint64_t bad = 0;               // samples skipped or substituted
  std::vector<BadFile> bad_files;      // the first hundred
};

struct Next {
  enum class State { kBatch, kEnd, kNotYet };
  State state = State::kNotYet;
  Batch batch;
  std::uint64_t batches_done = 0;  // of the plan's batches, this one included: what Shard::drawn_after() takes
};

// Threads:  may be used from any thread; batches go to whoever asks first.
// Cost:     no thread before the first start(); afterwards `threads` of them, until stop().
// Forks:    a child has none of the threads: there next() fails with kUnsupported, and the destructor does nothing.
class Loader {
 public:
  // Where the transform leaves the size open, the first readable picture fixes it.
  // Errors: kBadInput (as the first picture's, where it must be read).
  static Result<std::unique_ptr<Loader>> create(std::shared_ptr<const SampleSource> source, LoaderOptions options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Begins an iteration; one that is still going on is left. Errors: as Shard::create; kCancelled after stop().
  Status start(EpochPlan plan);

  // The next batch in order, its end, or kNotYet when `timeout` passes first.
  // Errors: those of a bad file under OnError::kError (the message has its path); kCancelled after stop().
  Result<Next> next(std::chrono::milliseconds timeout);

  // Ends all threads; returns when they have finished the sample they were at. Wakes whoever waits in next().
  void stop();

  LoaderStats stats() const;
  std::pair<int, int> size() const;  // {height, width} of every batch

 private:
  class State;
  explicit Loader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The thread count that `threads` = 0 stands for.
int default_threads();

}  // namespace stoker::feed
