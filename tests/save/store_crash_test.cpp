// Every operation of a save is a place where the power may go.
#include <functional>

#include "save/store_support.h"

namespace stoker::save::testing {
namespace {

constexpr auto kLosses = {FakeFs::Loss::kNothing, FakeFs::Loss::kUnsynced, FakeFs::Loss::kUnsyncedData};

// Saves step 1, then step 2 with `harm` done to the file system before that. Returns what the second save said.
Status save_two(FakeFs& fs, const std::function<void(FakeFs&)>& harm) {
  const auto store = open_store(fs, {.last = 1});
  EXPECT_TRUE(save_and_wait(*store, 1).ok());
  harm(fs);
  return save_and_wait(*store, 2);
}

std::size_t operations_of_first_save() {
  FakeFs fs;
  const auto store = open_store(fs, {.last = 1});
  EXPECT_TRUE(save_and_wait(*store, 1).ok());
  return fs.operations();
}

std::size_t operations_of_both_saves() {
  FakeFs fs;
  EXPECT_TRUE(save_two(fs, [](FakeFs&) {}).ok());
  return fs.operations();
}

// After the restart: what was confirmed is there, and everything that is there is whole.
void expect_whole_or_absent(FakeFs& fs, bool second_confirmed) {
  const auto store = open_store(fs, {.last = 1});
  const auto listing = store->list();
  ASSERT_TRUE(listing.ok());
  EXPECT_TRUE(listing->damaged.empty()) << listing->damaged.front().error.message;
  const auto damaged = store->verify();
  ASSERT_TRUE(damaged.ok());
  EXPECT_TRUE(damaged->empty()) << damaged->front().error.message;
  const auto loaded = store->load();
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_TRUE(is_sample(*loaded, loaded->info.step));
  if (second_confirmed) {
    EXPECT_EQ(loaded->info.step, 2);
  }
  for (const std::string& path : fs.paths()) EXPECT_EQ(path.find(".tmp-"), std::string::npos) << path;
  EXPECT_TRUE(save_and_wait(*store, 3).ok()) << "the store goes on";
}

TEST(StoreCrash, PowerLossBeforeAnyOperationLeavesOnlyWholeCheckpoints) {
  const std::size_t first = operations_of_first_save();
  const std::size_t end = operations_of_both_saves();
  ASSERT_GT(end, first + 10);
  for (std::size_t cut = first; cut <= end; ++cut) {
    for (const auto loss : kLosses) {
      SCOPED_TRACE("cut before operation " + std::to_string(cut) + ", loss " + std::to_string(static_cast<int>(loss)));
      FakeFs fs;
      const Status second = save_two(fs, [cut](FakeFs& disk) { disk.cut_power_before(cut); });
      const auto after = fs.restart(loss);
      expect_whole_or_absent(*after, second.ok());
    }
  }
}

TEST(StoreCrash, PowerLossDuringTheVeryFirstSaveLeavesAnEmptyStore) {
  const std::size_t end = operations_of_first_save();
  for (std::size_t cut = 2; cut < end; ++cut) {
    for (const auto loss : kLosses) {
      FakeFs fs;
      bool confirmed = false;
      {
        const auto store = open_store(fs);
        fs.cut_power_before(cut);
        confirmed = save_and_wait(*store, 1).ok();
      }
      const auto after = fs.restart(loss);
      const auto store = open_store(*after);
      EXPECT_TRUE(store->verify()->empty());
      const auto loaded = store->load();
      if (confirmed) {
        EXPECT_TRUE(loaded.ok());
      }
      if (loaded) {
        EXPECT_TRUE(is_sample(*loaded, 1));
      }
      if (!loaded) {
        EXPECT_EQ(loaded.code(), ErrorCode::kNotFound);
      }
    }
  }
}

// Without a restart: one operation fails, the process lives.
TEST(StoreCrash, AFailedSaveLeavesTheStoreAsItWas) {
  const std::size_t first = operations_of_first_save();
  const std::size_t end = operations_of_both_saves();
  for (const auto code : {ErrorCode::kIo, ErrorCode::kNoSpace}) {
    for (std::size_t at = first; at < end; ++at) {
      SCOPED_TRACE("operation " + std::to_string(at));
      FakeFs fs;
      const auto store = open_store(fs, {.last = 1});
      ASSERT_TRUE(save_and_wait(*store, 1).ok());
      const auto before = fs.paths();
      fs.fail(at, code);
      const Status second = save_and_wait(*store, 2);
      if (second.ok()) {  // it failed in what follows the rename: removing the old one
        EXPECT_TRUE(is_sample(*store->load(), 2));
        continue;
      }
      EXPECT_EQ(second.code(), code);
      EXPECT_EQ(fs.paths(), before);
      EXPECT_TRUE(is_sample(*store->load(), 1));
      EXPECT_TRUE(save_and_wait(*store, 2).ok()) << "and the next save works";
    }
  }
}

TEST(StoreCrash, AFullDiskOfAnySizeIsToldAndLeavesTheOldOne) {
  FakeFs probe;
  EXPECT_TRUE(save_two(probe, [](FakeFs&) {}).ok());
  for (std::uint64_t extra = 0; extra < 140'000; extra += 5'000) {
    SCOPED_TRACE(extra);
    FakeFs fs;
    const auto store = open_store(fs, {.last = 1});
    ASSERT_TRUE(save_and_wait(*store, 1).ok());
    const auto before = fs.paths();
    fs.set_capacity(50'000 + extra);
    const Status second = save_and_wait(*store, 2);
    if (second.ok()) continue;
    EXPECT_EQ(second.code(), ErrorCode::kNoSpace);
    EXPECT_NE(second.error().message.find("free"), std::string::npos) << second.error().message;
    EXPECT_EQ(fs.paths(), before);
    EXPECT_TRUE(is_sample(*store->load(), 1));
  }
}

TEST(StoreCrash, ADiskThatFillsUpDuringTheWriteIsTheSame) {
  FakeFs fs;
  const auto store = open_store(fs, {.last = 1});
  ASSERT_TRUE(save_and_wait(*store, 1).ok());
  const auto before = fs.paths();
  const Sample sample(2);
  fs.fail(fs.operations() + 3, ErrorCode::kNoSpace);
  ASSERT_TRUE(store->save(2, sample.views(), Sample::options(2)).ok());
  const Status status = store->wait();
  EXPECT_EQ(status.code(), ErrorCode::kNoSpace);
  EXPECT_EQ(fs.paths(), before);
  EXPECT_TRUE(store->wait().ok()) << "the error is given once";
}

}  // namespace
}  // namespace stoker::save::testing
