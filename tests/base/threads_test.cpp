#include "stoker/base/threads.h"

#include <array>
#include <atomic>

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(ForEachParallel, EachPieceIsDoneOnce) {
  std::array<std::atomic<int>, 1000> done{};
  EXPECT_TRUE(for_each_parallel(done.size(), 4, [&](std::size_t i) {
    ++done[i];
    return Status();
  }));
  for (const auto& times : done) EXPECT_EQ(times, 1);
}

TEST(ForEachParallel, AFailureIsTheAnswerAndNoNewPieceStarts) {
  std::atomic<int> started{0};
  const Status status = for_each_parallel(1000, 1, [&](std::size_t i) -> Status {
    ++started;
    if (i == 7) return Error{ErrorCode::kCorrupt, "piece 7"};
    return {};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "piece 7");
  EXPECT_EQ(started, 8);
}

TEST(ForEachParallel, NothingToDoIsFine) {
  EXPECT_TRUE(for_each_parallel(0, 4, [](std::size_t) -> Status { return Error{ErrorCode::kCorrupt, "called"}; }));
}

}  // namespace
}  // namespace stoker
