#include "feed/loader/sample_maker.h"

#include <fmt/format.h>

#include <exception>

#include "feed/loader/random.h"
#include "stoker/base/events.h"
#include "stoker/base/text.h"

namespace stoker::feed {
namespace {

EventName g_read("feed.read");      // NOLINT: names are looked up once a process
EventName g_decode("feed.decode");  // NOLINT

constexpr int kSubstituteTries = 16;
constexpr std::size_t kBadFilesKept = 100;

// Adds the time of a scope to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(std::atomic<std::int64_t>& sum) : sum_(sum) {}
  ~Stopwatch() {
    const auto took = std::chrono::steady_clock::now() - begin_;
    sum_.fetch_add(std::chrono::nanoseconds(took).count(), std::memory_order_relaxed);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  std::atomic<std::int64_t>& sum_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

bool fits(const Geometry& g, const BatchShape& shape) {
  return g.window.width == shape.width && g.window.height == shape.height;
}

Error wrong_size(const Geometry& g, const BatchShape& shape) {
  return {ErrorCode::kBadInput,
          fmt::format("{} × {} pixels after the transform, but the batch is {} × {}", g.window.width, g.window.height,
                      shape.width, shape.height),
          "end the transform with CenterCrop, RandomResizedCrop or Resize((height, width))"};
}

// Names the file, and says how to go on without it.
Error about(Error error, const std::string& path) {
  if (error.message.find(path) == std::string::npos) error.message = path + ": " + error.message;
  if (!error.hint.empty()) error.hint += "; ";
  error.hint += "to go on without it, pass on_error=\"skip\" or \"substitute\"; `stoker check` lists all bad files";
  return error;
}

}  // namespace

void LoaderCounters::add_bad(const std::string& path, const std::string& why) {
  MutexLock lock(mutex_);
  ++bad_;
  const auto known = bad_files_.find(path);
  if (known != bad_files_.end()) {
    ++known->second.times;
  } else if (bad_files_.size() < kBadFilesKept) {
    bad_files_.emplace(path, BadFile{path, why, 1});
  }
}

void LoaderCounters::fill(LoaderStats& stats) const {
  stats.samples = samples.load(std::memory_order_relaxed);
  stats.bytes_read = bytes_read.load(std::memory_order_relaxed);
  stats.read = std::chrono::nanoseconds(read_ns.load(std::memory_order_relaxed));
  stats.decode = std::chrono::nanoseconds(decode_ns.load(std::memory_order_relaxed));
  MutexLock lock(mutex_);
  stats.bad = bad_;
  for (const auto& [path, file] : bad_files_) stats.bad_files.push_back(file);
}

SampleMaker::SampleMaker(const SampleSource& source, const LoaderOptions& options, LoaderCounters& counters)
    : source_(source), options_(options), counters_(counters), decoder_(options.decoder) {}

Result<bool> SampleMaker::make(const EpochPlan& plan, std::uint64_t position, BatchSlot& slot, std::size_t k) {
  const std::uint64_t sample = plan.order->at(plan.epoch, position % plan.order->length());
  const Status made = render(plan, position, sample, slot, k);
  if (made.ok()) return true;
  const std::string path = printable(source_.path(sample));
  if (wrong_size_) return Error{made.error().code, path + ": " + made.error().message, made.error().hint};
  if (options_.on_error == OnError::kError) return about(made.error(), path);
  counters_.add_bad(path, made.error().message);
  if (options_.on_error == OnError::kSkip) return false;
  return substitute(plan, position, slot, k);
}

Result<bool> SampleMaker::substitute(const EpochPlan& plan, std::uint64_t position, BatchSlot& slot, std::size_t k) {
  SampleRandom random(plan.order->seed(), plan.epoch, position, Purpose::kSubstitute);
  for (int attempt = 0; attempt < kSubstituteTries; ++attempt) {
    const auto other = static_cast<std::uint64_t>(random.uniform() * static_cast<double>(plan.order->length()));
    const std::uint64_t sample = plan.order->at(plan.epoch, other);
    const Status made = render(plan, position, sample, slot, k);
    if (made.ok()) return true;
    counters_.add_bad(printable(source_.path(sample)), made.error().message);
  }
  return Error{
      ErrorCode::kBadInput,
      fmt::format("{} samples in a row were bad; nothing can stand in for position {}", kSubstituteTries + 1, position),
      "`stoker check` lists the bad files"};
}

Status SampleMaker::render(const EpochPlan& plan, std::uint64_t position, std::uint64_t sample, BatchSlot& slot,
                           std::size_t k) {
  try {
    {
      const ScopedEvent span(g_read);
      const Stopwatch watch(counters_.read_ns);
      STOKER_TRY(source_.read(sample, file_));
    }
    counters_.bytes_read.fetch_add(file_.bytes().size(), std::memory_order_relaxed);
    const ScopedEvent span(g_decode);
    const Stopwatch watch(counters_.decode_ns);
    STOKER_TRY(decode(plan, position, slot.shape, slot.image(k)));
  } catch (const std::exception& e) {  // out of memory, in all likelihood; a thread must not end the process
    return Error{ErrorCode::kIo, e.what()};
  }
  slot.labels[k] = source_.label(sample);
  slot.samples[k] = sample;
  counters_.samples.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Status SampleMaker::decode(const EpochPlan& plan, std::uint64_t position, const BatchShape& shape, void* out) {
  const auto info = decoder_.open(file_.bytes());
  if (!info) return info.error();
  const Geometry geometry =
      options_.transform.draw_at(info->width, info->height, plan.order->seed(), plan.epoch, position).geometry;
  const auto resized = static_cast<std::uint64_t>(geometry.width) * static_cast<std::uint64_t>(geometry.height);
  if (resized > kMaxPixels)
    return Error{ErrorCode::kBadInput, fmt::format("resized to {} × {} pixels", geometry.width, geometry.height)};
  wrong_size_ = !fits(geometry, shape);
  if (wrong_size_) return wrong_size(geometry, shape);
  return decoder_.render(geometry, options_.pixels, out);
}

Result<std::pair<int, int>> SampleMaker::shown_size(std::uint64_t sample) {
  if (const Status read = source_.read(sample, file_); !read.ok()) return read.error();
  const auto info = decoder_.open(file_.bytes());
  if (!info) return about(info.error(), printable(source_.path(sample)));
  const Geometry geometry = options_.transform.draw_at(info->width, info->height, 0, 0, 0).geometry;
  return std::pair{geometry.window.height, geometry.window.width};
}

}  // namespace stoker::feed
