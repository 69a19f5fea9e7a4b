#include "stoker/feed/transform.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker::feed {
namespace {

TransformPlan compiled(std::vector<TransformStep> steps) {
  auto made = TransformPlan::compile(std::move(steps));
  STOKER_CHECK(made.ok(), "plan");
  return *std::move(made);
}

void expect_box(const IntBox& box, int left, int top, int width, int height) {
  EXPECT_EQ(box.left, left);
  EXPECT_EQ(box.top, top);
  EXPECT_EQ(box.width, width);
  EXPECT_EQ(box.height, height);
}

TEST(TransformTest, ResizeByTheShorterSideTruncatesTheLonger) {
  const Geometry g = compiled({Resize{256, 0}, CenterCrop{224, 224}}).draw_at(500, 375, 0, 0, 0).geometry;
  EXPECT_EQ(g.width, 341);  // 256 · 500 / 375 = 341.33
  EXPECT_EQ(g.height, 256);
  expect_box(g.window, 58, 16, 224, 224);  // 58.5 rounds to the even 58
}

TEST(TransformTest, ACropLargerThanThePictureReachesOutside) {
  const Geometry g = compiled({CenterCrop{10, 7}}).draw_at(4, 5, 0, 0, 0).geometry;
  expect_box(g.window, -1, -2, 7, 10);
}

TEST(TransformTest, AFlipBeforeACropMirrorsTheCrop) {
  const Geometry g = compiled({RandomHorizontalFlip{1}, CenterCrop{4, 4}}).draw_at(7, 4, 0, 0, 0).geometry;
  EXPECT_TRUE(g.mirror);
  expect_box(g.window, 1, 0, 4, 4);  // 2 of the mirrored picture, which is 7 − 2 − 4 of the stored one
}

TEST(TransformTest, CropsLieInsideAndHaveTheAskedShare) {
  const TransformPlan crop = compiled({RandomResizedCrop{224, 224}});
  for (std::uint64_t position = 0; position < 2000; ++position) {
    const IntBox box = crop.draw_at(300, 200, 1, 0, position).geometry.crop;
    ASSERT_GE(box.left, 0);
    ASSERT_GE(box.top, 0);
    ASSERT_LE(box.left + box.width, 300);
    ASSERT_LE(box.top + box.height, 200);
    const double share = double{1} * box.width * box.height / (300 * 200);
    ASSERT_GT(share, 0.07);
    ASSERT_LE(share, 1.0);
  }
}

TEST(TransformTest, WhereNoCropFitsTheMiddleIsTaken) {
  const TransformPlan crop = compiled({RandomResizedCrop{8, 8, {1, 1}, {0.5, 0.5}}});
  const IntBox box = crop.draw_at(100, 100, 1, 0, 0).geometry.crop;
  expect_box(box, 25, 0, 50, 100);
}

TEST(TransformTest, TheSameKeyDrawsTheSameAndOthersDoNot) {
  const TransformPlan crop = compiled({RandomResizedCrop{224, 224}, RandomHorizontalFlip{}});
  const auto left = [&](std::uint64_t seed, std::uint64_t epoch, std::uint64_t position) {
    const IntBox box = crop.draw_at(1000, 1000, seed, epoch, position).geometry.crop;
    return std::array{box.left, box.top, box.width, box.height};
  };
  EXPECT_EQ(left(1, 2, 3), left(1, 2, 3));
  EXPECT_NE(left(1, 2, 3), left(2, 2, 3));
  EXPECT_NE(left(1, 2, 3), left(1, 3, 3));
  EXPECT_NE(left(1, 2, 3), left(1, 2, 4));
}

TEST(TransformTest, StepsThatDoNotFoldIntoOnePassAreRefusedByName) {
  const auto twice = TransformPlan::compile({Resize{8, 8}, RandomResizedCrop{8, 8}});
  EXPECT_EQ(twice.code(), ErrorCode::kUnsupported);
  EXPECT_NE(twice.error().message.find("RandomResizedCrop cannot follow Resize"), std::string::npos);
  EXPECT_EQ(TransformPlan::compile({CenterCrop{8, 8}, Resize{8, 8}}).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(TransformPlan::compile({RandomResizedCrop{0, 8}}).code(), ErrorCode::kBadInput);
  EXPECT_EQ(TransformPlan::compile({RandomResizedCrop{8, 8, {0.5, 0.1}}}).code(), ErrorCode::kBadInput);
  EXPECT_EQ(TransformPlan::compile({RandomHorizontalFlip{1.5}}).code(), ErrorCode::kBadInput);
}

TEST(TransformTest, OnlyAFixedSizeIsPromised) {
  EXPECT_EQ(compiled({Resize{8, 0}}).fixed_size(), std::nullopt);
  EXPECT_EQ(compiled({Resize{8, 0}, CenterCrop{6, 5}}).fixed_size(), (std::pair{6, 5}));
}

}  // namespace
}  // namespace stoker::feed
