#include "save/store_support.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "support/temp_dir.h"

namespace stoker::save::testing {
namespace {

using stoker::testing::TempDir;

class StoreTest : public ::testing::Test {
 protected:
  FakeFs fs_;
};

TEST_F(StoreTest, WhatIsSavedComesBack) {
  const auto store = open_store(fs_);
  ASSERT_TRUE(save_and_wait(*store, 1).ok());
  EXPECT_TRUE(is_sample(*store->load(), 1));
  EXPECT_TRUE(store->verify()->empty());
}

TEST_F(StoreTest, StepsGoByNumberNotByName) {
  const auto store = open_store(fs_, {.last = 0});
  for (const Step step : {9, 10, 100, 20}) ASSERT_TRUE(save_and_wait(*store, step).ok());
  EXPECT_EQ(steps(*store), (std::vector<Step>{9, 10, 20, 100}));
  EXPECT_EQ(store->list()->latest, 100);
}

TEST_F(StoreTest, AWholeStepIsNeverReplaced) {
  const auto store = open_store(fs_);
  ASSERT_TRUE(save_and_wait(*store, 1).ok());
  EXPECT_EQ(save_and_wait(*store, 1).code(), ErrorCode::kExists);
}

TEST_F(StoreTest, KeepsTheLastTheBestAndEachInterval) {
  const auto store = open_store(fs_, {.last = 2, .every_steps = 10, .best_metric = "acc"});
  for (Step step = 1; step <= 30; ++step)
    ASSERT_TRUE(save_and_wait(*store, step * 3, {{"acc", step == 4 ? 0.9 : 0.1}}).ok());
  EXPECT_EQ(steps(*store), (std::vector<Step>{12, 21, 30, 42, 51, 60, 72, 81, 87, 90}));
  EXPECT_EQ(store->list()->best, 12);
}

// Stands still until it is told.
class SetClock final : public Clock {
 public:
  Nanoseconds monotonic() const override { return now_; }
  Nanoseconds wall() const override { return now_; }
  void advance(Nanoseconds by) { now_ = now_.load() + by; }

 private:
  std::atomic<Nanoseconds> now_{std::chrono::hours(470'003) + std::chrono::minutes(7)};
};

TEST_F(StoreTest, KeepsOneOfEachTwoHoursOverRestarts) {
  SetClock clock;
  Store::Options options;
  options.keep = {.last = 5, .every = std::chrono::hours(2)};
  options.files = &fs_;
  options.clock = &clock;
  auto save_until = [&, step = Step{0}](Step last) mutable {
    const auto store = *Store::open(kDir, options);
    while (step < last) {
      clock.advance(std::chrono::minutes(30));
      ASSERT_TRUE(save_and_wait(*store, ++step).ok());
    }
  };
  const auto kept = [&] {
    Store::Options reading;
    reading.read_only = true;
    reading.files = &fs_;
    return steps(**Store::open(kDir, reading));
  };
  save_until(24);
  EXPECT_EQ(kept(), (std::vector<Step>{4, 8, 12, 16, 20, 21, 22, 23, 24}));
  save_until(32);
  EXPECT_EQ(kept(), (std::vector<Step>{4, 8, 12, 16, 20, 24, 28, 29, 30, 31, 32}));
}

TEST_F(StoreTest, KeepsTheFirstOfEachSoManyEpochs) {
  const auto store = open_store(fs_, {.last = 1, .every_epochs = 3});
  for (Step step = 1; step <= 16; ++step) {
    const Step epoch = step / 2;  // two saves an epoch
    ASSERT_TRUE(save_and_wait(*store, step, {{"epoch", static_cast<double>(epoch)}}).ok());
  }
  EXPECT_EQ(steps(*store), (std::vector<Step>{6, 12, 16}));
}

// Without room for a copy a save is slower, said, and the same in every other way.
TEST_F(StoreTest, ASaveWithoutRoomForACopyIsDurableWhenItReturns) {
  std::vector<std::string> said;
  Store::Options options;
  options.keep = {.last = 0};
  options.files = &fs_;
  options.threads = 2;
  options.max_staging_bytes = 1;
  options.notice = [&](Severity, const std::string& text) { said.push_back(text); };
  const auto store = *Store::open(kDir, options);
  std::string big((std::size_t{16} << 20) + 4097, 'a');
  const std::string odd = "odd";
  const std::vector<TensorView> views = {{"big", "U8", {big.size()}, std::as_bytes(std::span(big))},
                                         {"odd", "U8", {odd.size()}, std::as_bytes(std::span(odd))}};
  for (const Step step : {1, 2}) {
    big[5] = static_cast<char>('a' + step);
    ASSERT_TRUE(store->save(step, views, {}).ok());
    const auto loaded = store->load(step);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    const auto& bytes = loaded->tensors[0].bytes;
    EXPECT_EQ(std::memcmp(bytes.data.get(), big.data(), big.size()), 0);
    EXPECT_EQ(std::memcmp(loaded->tensors[1].bytes.data.get(), odd.data(), odd.size()), 0);
  }
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said.front().find("saves block until they are written"), std::string::npos) << said.front();
  fs_.fail(fs_.operations() + 2, ErrorCode::kNoSpace);
  big[5] = 'z';
  EXPECT_EQ(store->save(3, views, {}).code(), ErrorCode::kNoSpace) << "told by save() itself";
  EXPECT_EQ(steps(*store), (std::vector<Step>{1, 2}));
}

TEST_F(StoreTest, NanNeverWinsAndTheEarlierOfEqualsDoes) {
  const auto store = open_store(fs_, {.last = 1, .best_metric = "loss", .better = Better::kLower});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [step, loss] : std::vector<std::pair<Step, double>>{{1, nan}, {2, 0.5}, {3, 0.5}, {4, nan}, {5, 2}})
    ASSERT_TRUE(save_and_wait(*store, step, {{"loss", loss}}).ok());
  EXPECT_EQ(store->list()->best, 2);
  EXPECT_EQ(steps(*store), (std::vector<Step>{2, 5}));
}

TEST_F(StoreTest, UnchangedTensorsAreSharedAndOutliveTheirFirstStep) {
  const auto store = open_store(fs_, {.last = 1});
  for (Step step = 1; step <= 6; ++step) {
    ASSERT_TRUE(save_and_wait(*store, step).ok());
    EXPECT_TRUE(is_sample(*store->load(), step));
    EXPECT_TRUE(store->verify()->empty());
  }
  // Step 1's part is in use by half; the small one that moves is in the newest.
  EXPECT_EQ(store->describe(6)->tensors[1].file, "part-1.safetensors");
  EXPECT_EQ(store->describe(6)->tensors[2].file, "part-6.safetensors");
  EXPECT_EQ(steps(*store), (std::vector<Step>{6}));
}

TEST_F(StoreTest, AnInexactCheckpointNeedsAPinAndIsNeverTheLatest) {
  const auto store = open_store(fs_, {.last = 1});
  const Sample sample(7);
  EXPECT_EQ(store->save(7, sample.views(), {"null", {}, "", false}).code(), ErrorCode::kBadInput);
  ASSERT_TRUE(save_and_wait(*store, 7).ok());
  ASSERT_TRUE(store->save(7, sample.views(), {"null", {}, "emergency", false}).ok());
  ASSERT_TRUE(store->save(7, sample.views(), {"\"again\"", {}, "emergency", false}).ok());
  ASSERT_TRUE(save_and_wait(*store, 8).ok());
  EXPECT_EQ(store->list()->latest, 8);
  EXPECT_EQ(store->load({}, "emergency")->state, "\"again\"");
  EXPECT_EQ(steps(*store), (std::vector<Step>{7, 7, 8}));
}

TEST_F(StoreTest, BadInputIsNamedAndSavesNothing) {
  const auto store = open_store(fs_);
  const std::string bytes(8, 'x');
  const auto view = [&](std::string name, std::string dtype, std::vector<std::uint64_t> shape) {
    return TensorView{std::move(name), std::move(dtype), std::move(shape), std::as_bytes(std::span(bytes))};
  };
  const auto refused = [&](std::vector<TensorView> views) { return store->save(1, views, {}).error().message; };
  EXPECT_NE(refused({view("a", "F32", {3})}).find("its shape takes 12"), std::string::npos);
  EXPECT_NE(refused({view("a", "F4", {16})}).find("'F4'"), std::string::npos);
  EXPECT_NE(refused({view("a", "F32", {2}), view("a", "F32", {2})}).find("there twice"), std::string::npos);
  EXPECT_NE(refused({view("__metadata__", "F32", {2})}).find("__metadata__"), std::string::npos);
  EXPECT_EQ(store->save(-1, {}, {}).code(), ErrorCode::kBadInput);
  EXPECT_EQ(store->save(1, {}, {"null", {}, "../x", true}).code(), ErrorCode::kBadInput);
  EXPECT_TRUE(steps(*store).empty());
}

TEST_F(StoreTest, SecondWriterIsRefusedAndAReaderIsNot) {
  const auto store = open_store(fs_);
  ASSERT_TRUE(save_and_wait(*store, 1).ok());
  Store::Options options;
  options.files = &fs_;
  const auto second = Store::open(kDir, options);
  ASSERT_EQ(second.code(), ErrorCode::kInUse);
  EXPECT_NE(second.error().message.find("process " + std::to_string(::getpid())), std::string::npos);
  options.read_only = true;
  const auto reader = Store::open(kDir, options);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(is_sample(*(*reader)->load(), 1));
  EXPECT_EQ((*reader)->save(2, {}, {}).code(), ErrorCode::kBadInput);
  ASSERT_TRUE(store->close().ok());
  options.read_only = false;
  EXPECT_TRUE(Store::open(kDir, options).ok());
}

TEST_F(StoreTest, ALockLeftByTheDeadIsTakenOverAndSaid) {
  { const auto store = open_store(fs_); }
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  fs_.bytes(kDir / "lock") =
      R"({"pid":999999999,"host":")" + std::string(host) + R"(","since_utc":"2026-01-01T00:00:00Z"})";
  std::string said;
  const auto store = open_store(fs_, {}, [&](Severity, const std::string& text) { said += text; });
  EXPECT_NE(said.find("took over from process 999999999"), std::string::npos) << said;
}

// A DataLoader's worker is a fork that may outlive its killed parent: it must not keep the lock.
TEST(StoreOnDisk, AForkedChildHoldsNoLockAndSavesNothing) {
  const TempDir dir;
  auto store = Store::open(dir.path(), {});
  ASSERT_TRUE(store.ok());
  int to_child[2], to_parent[2];
  ASSERT_EQ(::pipe(to_child) + ::pipe(to_parent), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = (*store)->save(1, {}, {}).code() == ErrorCode::kInUse;
    char byte = refused ? 'y' : 'n';
    (void)!::write(to_parent[1], &byte, 1);
    (void)!::read(to_child[0], &byte, 1);
    ::_exit(0);
  }
  char said = 0;
  ASSERT_EQ(::read(to_parent[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  store->reset();  // the parent lets go; the child lives
  EXPECT_TRUE(Store::open(dir.path(), {}).ok());
  ASSERT_EQ(::write(to_child[1], "x", 1), 1);
  ::waitpid(child, nullptr, 0);
}

TEST(StoreOnDisk, RoundTripThroughRealFilesAndLinks) {
  const TempDir dir;
  Store::Options options;
  options.keep = {.last = 2};
  auto store = Store::open(dir / "deep/er", options);
  ASSERT_TRUE(store.ok());
  for (Step step = 1; step <= 4; ++step) ASSERT_TRUE(save_and_wait(**store, step).ok());
  EXPECT_TRUE(is_sample(*(*store)->load(), 4));
  EXPECT_TRUE(is_sample(*(*store)->load(3), 3));
  EXPECT_TRUE((*store)->verify()->empty());
}

// The staging buffer is the saving thread's own again when save() returns: what it copies next cannot reach the file.
TEST_F(StoreTest, SavesInARowFromSeveralThreadsKeepTheirOwnBytes) {
  const auto store = open_store(fs_, {.last = 0});
  std::atomic<Step> next{1};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (Step step = next++; step <= 18; step = next++) {
          const Sample sample(step);
          EXPECT_TRUE(store->save(step, sample.views(), Sample::options(step)).ok());
          if (step % 3 == 0) {
            EXPECT_TRUE(store->load().ok());
          }
        }
      });
    }
  }
  ASSERT_TRUE(store->wait().ok());
  for (Step step = 1; step <= 18; ++step) EXPECT_TRUE(is_sample(*store->load(step), step));
}

TEST_F(StoreTest, ClosingDuringASaveFinishesIt) {
  {
    const auto store = open_store(fs_);
    const Sample sample(1);
    ASSERT_TRUE(store->save(1, sample.views(), Sample::options(1)).ok());
  }
  EXPECT_TRUE(is_sample(*open_store(fs_)->load(), 1));
}

// A step being written or removed is there or not there to a reader, never damaged.
TEST_F(StoreTest, ReadersBesideARotatingWriterMeetNoDamage) {
  const auto writer = open_store(fs_, {.last = 1});
  ASSERT_TRUE(save_and_wait(*writer, 1).ok());
  std::atomic<bool> done = false;
  const auto read = [&] {
    Store::Options options;
    options.read_only = true;
    options.files = &fs_;
    options.threads = 1;
    const auto reader = *Store::open(kDir, std::move(options));
    while (!done) {
      const auto listing = reader->list();
      ASSERT_TRUE(listing.ok());
      ASSERT_TRUE(listing->damaged.empty()) << listing->damaged.front().error.message;
      const auto damaged = reader->verify();
      ASSERT_TRUE(damaged.ok());
      ASSERT_TRUE(damaged->empty()) << damaged->front().error.message;
      const auto loaded = reader->load();
      ASSERT_TRUE(loaded.ok()) << loaded.error().message;
      ASSERT_TRUE(loaded->skipped.empty()) << loaded->skipped.front().error.message;
      ASSERT_TRUE(is_sample(*loaded, loaded->info.step));
      const auto shown = reader->describe({});
      ASSERT_TRUE(shown.ok()) << shown.error().message;
    }
  };
  {
    const std::jthread one(read);
    const std::jthread two(read);
    for (Step step = 2; step < 400; ++step) EXPECT_TRUE(save_and_wait(*writer, step).ok());
    done = true;
  }
}

}  // namespace
}  // namespace stoker::save::testing
