// The vector loops give the bytes of the plain ones, on every instruction set that this CPU has.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <random>

#include "feed/image/codec.h"
#include "feed/image/normalizer.h"

namespace stoker::feed {
namespace {

std::vector<std::uint8_t> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

class KernelsOn : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

struct Resize {
  int in;
  int out;
  Interpolation interpolation;
};
constexpr Resize kResizes[] = {
    {256, 224, Interpolation::kBilinear}, {230, 224, Interpolation::kBicubic}, {1024, 224, Interpolation::kBilinear},
    {1024, 31, Interpolation::kBicubic},  {17, 224, Interpolation::kBilinear}, {3, 224, Interpolation::kBicubic},
    {2, 1, Interpolation::kBilinear},     {1, 5, Interpolation::kBicubic},     {5, 3, Interpolation::kBicubic},
};

TEST_P(KernelsOn, HorizontalIsThePlainLoop) {
  for (const Resize& resize : kResizes)
    for (int rows = 1; rows <= 9; ++rows) {
      Axis axis;
      make_axis({resize.in}, resize.out, 0, resize.out, rows % 2 == 0, resize.interpolation, axis);
      const std::size_t in_stride = row_bytes(resize.in);
      const std::size_t out_stride = row_bytes(resize.out);
      const std::vector<std::uint8_t> in = random_bytes(in_stride * static_cast<std::size_t>(rows), 1);
      std::vector<std::uint8_t> want(out_stride * static_cast<std::size_t>(rows));
      std::vector<std::uint8_t> got(want.size());
      plain::resize_horizontal(in.data(), in_stride, rows, axis, want.data(), out_stride);
      resize_horizontal(in.data(), in_stride, rows, axis, got.data(), out_stride);
      for (int y = 0; y < rows; ++y)
        for (int x = 0; x < resize.out; ++x)
          for (int c = 0; c < 3; ++c) {
            const std::size_t at = static_cast<std::size_t>(y) * out_stride + static_cast<std::size_t>(x * 4 + c);
            ASSERT_EQ(got[at], want[at]) << resize.in << " to " << resize.out << ", row " << y << ", pixel " << x;
          }
    }
}

TEST_P(KernelsOn, VerticalIsThePlainLoop) {
  constexpr std::size_t kBytes = 4 * 225;
  for (const Resize& resize : kResizes) {
    Axis axis;
    make_axis({resize.in}, resize.out, 0, resize.out, false, resize.interpolation, axis);
    const std::size_t stride = kBytes + kRowPadding;
    const std::vector<std::uint8_t> in = random_bytes(stride * static_cast<std::size_t>(resize.in), 2);
    std::vector<std::uint8_t> want(stride);
    std::vector<std::uint8_t> got(stride);
    for (std::size_t i = 0; i < axis.start.size(); ++i) {
      const std::uint8_t* rows = in.data() + static_cast<std::size_t>(axis.start[i]) * stride;
      const TapPair* weights = &axis.weight[i * static_cast<std::size_t>(axis.pairs)];
      plain::resize_vertical(rows, stride, axis.taps[i], weights, kBytes, want.data());
      resize_vertical(rows, stride, axis.taps[i], weights, kBytes, got.data());
      ASSERT_TRUE(std::equal(want.begin(), want.begin() + kBytes, got.begin())) << resize.in << " to " << resize.out;
    }
  }
}

TEST_P(KernelsOn, StoresWriteTheirPixelsAndNothingElse) {
  const std::vector<std::uint8_t> pixels = random_bytes(row_bytes(100), 3);
  for (int count = 1; count <= 100; ++count) {
    std::vector<std::uint8_t> want(static_cast<std::size_t>(count) * 3 + 16, 0xee);
    std::vector<std::uint8_t> got = want;
    plain::store_rgb(pixels.data(), count, want.data());
    store_rgb(pixels.data(), count, got.data());
    ASSERT_EQ(got, want) << count;
  }
}

// The chain of operations is compared with the table when it is made; what is left to see is which of them is used.
TEST_P(KernelsOn, FloatsAreTheTablesForEveryByte) {
  PixelOptions options;
  options.mean = {0.485F, 0.456F, 0.406F};
  options.stddev = {0.229F, 0.224F, 0.225F};
  for (const UnitScale scale : {UnitScale::kDivide, UnitScale::kMultiply}) {
    options.unit_scale = scale;
    const Normalizer normalizer = make_normalizer(options);
    std::vector<std::uint8_t> pixels(row_bytes(256));
    for (std::size_t i = 0; i < 256 * 4; ++i) pixels[i] = static_cast<std::uint8_t>(i / 4);
    std::vector<float> made(3 * 256);
    store_planes(pixels.data(), 256, normalizer, &made[0], &made[256], &made[512]);
    for (std::size_t i = 0; i < made.size(); ++i) ASSERT_EQ(made[i], normalizer.table[i / 256][i % 256]) << i;
  }
}

std::vector<std::int64_t> targets_here() {
  std::vector<std::int64_t> targets;
  for (std::int64_t rest = hwy::SupportedTargets() & kernel_targets(); rest != 0; rest &= rest - 1)
    targets.push_back(rest & -rest);
  return targets;
}
std::string target_name(const testing::TestParamInfo<std::int64_t>& test) { return hwy::TargetName(test.param); }
INSTANTIATE_TEST_SUITE_P(Targets, KernelsOn, testing::ValuesIn(targets_here()), target_name);

}  // namespace
}  // namespace stoker::feed
