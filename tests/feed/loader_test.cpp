#include "stoker/feed/loader.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "tiny_png.h"

namespace stoker::feed {
namespace {

using testing::tiny_png;

constexpr std::chrono::milliseconds kLong{20000};

// Pictures in memory, whose sample number is their red. Bad ones and a gate can be set.
class Pictures final : public SampleSource {
 public:
  explicit Pictures(std::size_t count, int side = 12) {
    for (std::size_t i = 0; i < count; ++i) files_.push_back(tiny_png(side, side, static_cast<std::uint8_t>(i)));
  }
  void spoil(std::size_t i) { files_[i].resize(files_[i].size() / 2); }
  void replace(std::size_t i, std::string file) { files_[i] = std::move(file); }
  // From now on read() waits until open_gate().
  void close_gate() {
    const std::lock_guard lock(mutex_);
    gate_open_ = false;
  }
  void open_gate() {
    const std::lock_guard lock(mutex_);
    gate_open_ = true;
    changed_.notify_all();
  }
  void wait_for_reader() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

  std::size_t size() const override { return files_.size(); }
  std::int64_t label(std::size_t i) const override { return static_cast<std::int64_t>(i % 7); }
  std::string path(std::size_t i) const override { return "pictures/" + std::to_string(i) + ".png"; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Status read(std::size_t i, FileBuffer& out) const override {
    {
      std::unique_lock lock(mutex_);
      ++waiting_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return gate_open_; });
      --waiting_;
    }
    std::memcpy(out.resize(files_[i].size()), files_[i].data(), files_[i].size());
    return {};
  }

 private:
  std::vector<std::string> files_;
  std::vector<std::string> classes_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int waiting_ = 0;
  bool gate_open_ = true;
};

TransformPlan plan(std::vector<TransformStep> steps) {
  auto made = TransformPlan::compile(std::move(steps));
  STOKER_CHECK(made.ok(), "plan");
  return *std::move(made);
}

LoaderOptions options(int threads = 2, OnError on_error = OnError::kError) {
  LoaderOptions made;
  made.transform = plan({RandomResizedCrop{8, 8}, RandomHorizontalFlip{}});
  made.pixels.type = PixelType::kUint8Nhwc;
  made.threads = threads;
  made.on_error = on_error;
  return made;
}

EpochPlan epoch_of(const Pictures& pictures, std::size_t batch_size, std::uint64_t epoch = 0, std::uint64_t start = 0) {
  auto order = Order::create({.kind = OrderKind::kShuffle, .seed = 9, .population = pictures.size()});
  STOKER_CHECK(order.ok(), "order");
  return {std::make_shared<const Order>(*std::move(order)), epoch, start, {batch_size}};
}

std::unique_ptr<Loader> make(const std::shared_ptr<Pictures>& pictures, LoaderOptions with) {
  auto loader = Loader::create(pictures, std::move(with));
  STOKER_CHECK(loader.ok(), "loader");
  return *std::move(loader);
}

std::string bytes(const Batch& batch) {
  const auto size = batch.size() * static_cast<std::size_t>(batch.height() * batch.width()) * 3;
  std::string out(static_cast<const char*>(batch.images()), size);
  for (std::size_t i = 0; i < batch.size(); ++i) out += std::to_string(batch.labels()[i]) + ",";
  return out;
}

// The rest of the iteration; an error ends it and comes last.
std::vector<std::string> drain(Loader& loader) {
  std::vector<std::string> out;
  while (true) {
    auto next = loader.next(kLong);
    if (!next.ok()) {
      out.push_back("error: " + next.error().message);
      return out;
    }
    if (next->state != Next::State::kBatch) return out;
    out.push_back(bytes(next->batch));
  }
}

std::vector<std::string> epoch(Loader& loader, EpochPlan what) {
  STOKER_CHECK(loader.start(std::move(what)).ok(), "start");
  return drain(loader);
}

TEST(LoaderTest, AnyNumberOfThreadsGivesTheSameBytes) {
  const auto pictures = std::make_shared<Pictures>(50);
  const auto one = make(pictures, options(1));
  const auto five = make(pictures, options(5));
  const auto first = epoch(*one, epoch_of(*pictures, 8));
  EXPECT_EQ(first.size(), 7U);
  EXPECT_EQ(first, epoch(*five, epoch_of(*pictures, 8)));
  EXPECT_NE(first, epoch(*one, epoch_of(*pictures, 8, 1)));
}

TEST(LoaderTest, AnEpochGoneOnWithIsItsRest) {
  const auto pictures = std::make_shared<Pictures>(50);
  const auto loader = make(pictures, options(2));
  const auto whole = epoch(*loader, epoch_of(*pictures, 8, 3));
  const auto rest = epoch(*make(pictures, options(1)), epoch_of(*pictures, 8, 3, 24));
  EXPECT_EQ(rest, std::vector<std::string>(whole.begin() + 3, whole.end()));
}

TEST(LoaderTest, TheEndIsSaidAgainAndAgain) {
  const auto pictures = std::make_shared<Pictures>(3);
  const auto loader = make(pictures, options());
  EXPECT_EQ(loader->next(kLong)->state, Next::State::kEnd);  // nothing was started
  EXPECT_EQ(epoch(*loader, epoch_of(*pictures, 2)).size(), 2U);
  EXPECT_EQ(loader->next(kLong)->state, Next::State::kEnd);
  EXPECT_EQ(loader->next(kLong)->state, Next::State::kEnd);
}

TEST(LoaderTest, LabelsAndSamplesGoWithTheirPictures) {
  const auto pictures = std::make_shared<Pictures>(20);
  const auto loader = make(pictures, options());
  ASSERT_TRUE(loader->start(epoch_of(*pictures, 20)).ok());
  const auto next = loader->next(kLong);
  ASSERT_TRUE(next.ok());
  for (std::size_t i = 0; i < 20; ++i) {
    const auto* pixels = static_cast<const std::uint8_t*>(next->batch.images()) + i * 8 * 8 * 3;
    EXPECT_EQ(pixels[0], next->batch.samples()[i]);
    EXPECT_EQ(next->batch.labels()[i], pictures->label(next->batch.samples()[i]));
  }
  EXPECT_EQ(next->batches_done, 1U);
}

TEST(LoaderTest, ABatchOutlivesItsLoaderAndOthersDoNotOverwriteIt) {
  const auto pictures = std::make_shared<Pictures>(64);
  auto loader = make(pictures, options());
  std::vector<Batch> held;
  std::vector<std::string> copies;
  ASSERT_TRUE(loader->start(epoch_of(*pictures, 4)).ok());
  while (true) {
    auto next = loader->next(kLong);
    ASSERT_TRUE(next.ok());
    if (next->state == Next::State::kEnd) break;
    held.push_back(next->batch);
    copies.push_back(bytes(next->batch));
  }
  EXPECT_EQ(loader->stats().slots, 16U);
  loader.reset();
  for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(bytes(held[i]), copies[i]);
}

TEST(LoaderTest, SlotsOfBatchesLetGoAreUsedAgain) {
  const auto pictures = std::make_shared<Pictures>(200);
  const auto loader = make(pictures, options());
  epoch(*loader, epoch_of(*pictures, 4));
  EXPECT_LE(loader->stats().slots, 5U);
}

TEST(LoaderTest, ABadFileFailsItsBatchAndIsNamed) {
  const auto pictures = std::make_shared<Pictures>(40);
  const auto good = epoch(*make(pictures, options()), epoch_of(*pictures, 4));
  const EpochPlan what = epoch_of(*pictures, 4);
  const std::uint64_t bad = what.order->at(0, 13);
  pictures->spoil(bad);
  pictures->spoil(what.order->at(0, 30));
  const auto loader = make(pictures, options(4));
  const auto got = epoch(*loader, what);
  ASSERT_EQ(got.size(), 4U);  // batches 0, 1, 2, then the error of batch 3
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + 3, good.begin()));
  EXPECT_NE(got[3].find("pictures/" + std::to_string(bad) + ".png"), std::string::npos);
  const auto again = loader->next(kLong);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ("error: " + again.error().message, got[3]);
  EXPECT_EQ(again.code(), ErrorCode::kCorrupt);
  EXPECT_NE(again.error().hint.find("on_error"), std::string::npos);
  EXPECT_EQ(epoch(*loader, epoch_of(*pictures, 4, 0, 32)).size(), 2U);  // start() begins anew
}

TEST(LoaderTest, SkipLeavesABadSampleOutAndMovesNoOther) {
  const auto pictures = std::make_shared<Pictures>(40);
  const EpochPlan what = epoch_of(*pictures, 4);
  const auto good = epoch(*make(pictures, options()), what);
  pictures->spoil(what.order->at(0, 13));
  for (std::uint64_t position = 20; position < 24; ++position) pictures->spoil(what.order->at(0, position));
  const auto loader = make(pictures, options(3, OnError::kSkip));
  const auto got = epoch(*loader, what);
  ASSERT_EQ(got.size(), 9U);  // batch 5 had bad samples only
  constexpr std::size_t kImage = 8 * 8 * 3;
  EXPECT_EQ(got[3].substr(0, kImage), good[3].substr(0, kImage));
  EXPECT_EQ(got[3].substr(kImage, 2 * kImage), good[3].substr(2 * kImage, 2 * kImage));
  EXPECT_EQ(got[4], good[4]);
  EXPECT_EQ(got[5], good[6]);
  EXPECT_EQ(loader->stats().bad, 5U);
  EXPECT_EQ(loader->stats().bad_files.size(), 5U);
}

TEST(LoaderTest, ASubstituteIsAFunctionOfThePlaceItFills) {
  const auto pictures = std::make_shared<Pictures>(40);
  const EpochPlan what = epoch_of(*pictures, 4);
  const auto good = epoch(*make(pictures, options()), what);
  pictures->spoil(what.order->at(0, 13));
  const auto got = epoch(*make(pictures, options(1, OnError::kSubstitute)), what);
  EXPECT_EQ(got, epoch(*make(pictures, options(4, OnError::kSubstitute)), what));
  ASSERT_EQ(got.size(), good.size());
  EXPECT_EQ(got[3].size(), good[3].size());
  EXPECT_NE(got[3], good[3]);
  EXPECT_EQ(got[2], good[2]);
}

TEST(LoaderTest, WhereEverySampleIsBadSubstitutionGivesUp) {
  const auto pictures = std::make_shared<Pictures>(5);
  for (std::size_t i = 0; i < 5; ++i) pictures->spoil(i);
  const auto got = epoch(*make(pictures, options(2, OnError::kSubstitute)), epoch_of(*pictures, 5));
  ASSERT_EQ(got.size(), 1U);
  EXPECT_NE(got[0].find("samples in a row were bad"), std::string::npos);
}

TEST(LoaderTest, PicturesOfSeveralSizesAreTheTransformsFaultUnderAnyPolicy) {
  const auto pictures = std::make_shared<Pictures>(4);
  pictures->replace(2, tiny_png(9, 12, 2));
  LoaderOptions with = options(2, OnError::kSkip);
  with.transform = plan({});
  const auto loader = make(pictures, std::move(with));
  EXPECT_EQ(loader->size(), (std::pair{12, 12}));
  const auto got = epoch(*loader, epoch_of(*pictures, 4));
  EXPECT_NE(got.back().find("pictures/2.png: 9 × 12 pixels after the transform, but the batch is 12 × 12"),
            std::string::npos);
}

TEST(LoaderTest, StartInTheMiddleLeavesTheOldIteration) {
  const auto pictures = std::make_shared<Pictures>(50);
  const auto loader = make(pictures, options(3));
  const auto whole = epoch(*loader, epoch_of(*pictures, 8));
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(loader->start(epoch_of(*pictures, 8, 7)).ok());
    ASSERT_TRUE(loader->next(kLong).ok());
  }
  EXPECT_EQ(epoch(*loader, epoch_of(*pictures, 8)), whole);
}

TEST(LoaderTest, TwoLoadersOverOneSourceDoNotDisturbEachOther) {
  const auto pictures = std::make_shared<Pictures>(50);
  const auto expected = epoch(*make(pictures, options(2)), epoch_of(*pictures, 8));
  const auto a = make(pictures, options(2));
  const auto b = make(pictures, options(2));
  auto other = std::async(std::launch::async, [&] { return epoch(*a, epoch_of(*pictures, 8)); });
  EXPECT_EQ(epoch(*b, epoch_of(*pictures, 8)), expected);
  EXPECT_EQ(other.get(), expected);
}

// Rule 7: the consumer is woken at once, though a thread is still in the middle of a file.
TEST(LoaderTest, StopWakesAWaitingConsumerAndEndsBlockedThreads) {
  const auto pictures = std::make_shared<Pictures>(50);
  const auto loader = make(pictures, options(2));
  pictures->close_gate();
  ASSERT_TRUE(loader->start(epoch_of(*pictures, 8)).ok());
  pictures->wait_for_reader();
  auto consumer = std::async(std::launch::async, [&] { return loader->next(std::chrono::hours(1)).code(); });
  auto stopper = std::async(std::launch::async, [&] { loader->stop(); });
  EXPECT_EQ(consumer.get(), ErrorCode::kCancelled);
  pictures->open_gate();
  stopper.get();
  EXPECT_EQ(loader->next(kLong).code(), ErrorCode::kCancelled);
  EXPECT_EQ(loader->start(epoch_of(*pictures, 8)).code(), ErrorCode::kCancelled);
}

TEST(LoaderTest, StopEndsThreadsThatWaitForRoom) {
  const auto pictures = std::make_shared<Pictures>(200);
  const auto loader = make(pictures, options(3));
  ASSERT_TRUE(loader->start(epoch_of(*pictures, 2)).ok());
  while (loader->stats().samples < 6) std::this_thread::yield();  // three batches of two: all that may be open
  loader->stop();
  EXPECT_EQ(loader->stats().samples, 6U);
}

TEST(LoaderTest, ALoaderDroppedInTheMiddleLeavesNothingBehind) {
  const auto pictures = std::make_shared<Pictures>(50);
  for (int round = 0; round < 20; ++round) {
    const auto loader = make(pictures, options(4));
    ASSERT_TRUE(loader->start(epoch_of(*pictures, 8)).ok());
    if (round % 2 == 0) {
      ASSERT_TRUE(loader->next(kLong).ok());
    }
  }
}

TEST(LoaderTest, AWaitThatIsTooShortSaysNotYet) {
  const auto pictures = std::make_shared<Pictures>(8);
  const auto loader = make(pictures, options(1));
  pictures->close_gate();
  ASSERT_TRUE(loader->start(epoch_of(*pictures, 8)).ok());
  EXPECT_EQ(loader->next(std::chrono::milliseconds(1))->state, Next::State::kNotYet);
  pictures->open_gate();
  EXPECT_EQ(loader->next(kLong)->state, Next::State::kBatch);
}

}  // namespace
}  // namespace stoker::feed
