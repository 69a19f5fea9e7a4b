// The parts of the image room that need no Pillow beside them; tests/python/test_image.py compares the pixels.
#include <gtest/gtest.h>
#include <malloc.h>

#include <limits>

#include "feed/image/axis.h"
#include "feed/image/codec.h"
#include "feed/image/exif.h"
#include "feed/image/jpeg_header.h"
#include "feed/image/orient.h"
#include "stoker/base/files.h"

namespace stoker::feed {
namespace {

using namespace std::string_literals;

Bytes bytes(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }
std::span<const std::byte> file(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string picture(const std::string& name) {
  const auto path = std::filesystem::path(STOKER_SOURCE_DIR) / "tests/data/images" / name;
  return *FileSystem::real().read(path);
}

// The leaf with another size in its frame header.
std::string leaf_that_claims(int width, int height) {
  std::string leaf = picture("leaf_baseline.jpg");
  const std::size_t frame = leaf.find("\xff\xc0");
  const auto put = [&](std::size_t at, int value) {
    leaf[at] = static_cast<char>(value >> 8);
    leaf[at + 1] = static_cast<char>(value);
  };
  put(frame + 5, height);
  put(frame + 7, width);
  return leaf;
}

TEST(Detect, FirstBytesDecideAndNamesAreNeverAsked) {
  EXPECT_EQ(detect(bytes("\xff\xd8\xff\xe0")), ImageFormat::kJpeg);
  EXPECT_EQ(detect(bytes("\x89PNG\r\n\x1a\n")), ImageFormat::kPng);
  EXPECT_EQ(detect(bytes("RIFF\1\2\3\4WEBPVP8 ")), ImageFormat::kWebp);
  EXPECT_EQ(detect(bytes("GIF89a")), ImageFormat::kGif);
  EXPECT_EQ(detect(bytes("BM")), ImageFormat::kBmp);
  EXPECT_EQ(detect(bytes("RIFF\1\2\3\4WAVE")), ImageFormat::kOther);
  EXPECT_EQ(not_decoded(bytes("\x1f\x8b")).message, "not a picture that Stoker decodes: gzip data");
}

TEST(PassOrder, Pillow13GoesVerticallyFirstWhenHeightShrinksMoreThanTwiceAsMuch) {
  const auto first = [](int in_w, int in_h, int out_w, int out_h) {
    return vertical_first(Arithmetic::kPillow13, in_w, in_h, out_w, out_h);
  };
  EXPECT_TRUE(first(256, 256, 250, 224));
  EXPECT_FALSE(first(240, 256, 224, 224));  // 2 · 16 is not below 32
  EXPECT_TRUE(first(239, 256, 224, 224));
  EXPECT_FALSE(first(200, 100, 210, 100));  // the height stays
  EXPECT_TRUE(first(100, 100, 300, 99));
  EXPECT_FALSE(vertical_first(Arithmetic::kPillow12, 256, 256, 250, 224));
}

TEST(Axis, WindowNeedsOnlyItsOwnSourcePixels) {
  Axis axis;
  make_axis({1000}, 100, 40, 10, false, Interpolation::kBilinear, axis);
  EXPECT_EQ(axis.count, 10);
  EXPECT_GE(axis.source_begin, 390);
  EXPECT_LE(axis.source_end, 510);
}

TEST(Axis, MirrorReversesOutputsOfTheSamePixels) {
  Axis straight;
  Axis mirrored;
  make_axis({300}, 100, 20, 50, false, Interpolation::kNearest, straight);
  make_axis({300}, 100, 20, 50, true, Interpolation::kNearest, mirrored);
  EXPECT_EQ(straight.source_begin, mirrored.source_begin);
  EXPECT_EQ(std::vector<int>(straight.start.rbegin(), straight.start.rend()), mirrored.start);
}

TEST(Axis, WeightsOfEachOutputSumToOneWithinRounding) {
  for (const auto interpolation : {Interpolation::kBilinear, Interpolation::kBicubic})
    for (const int in : {1, 2, 7, 224, 1000}) {
      Axis axis;
      make_axis({in}, 90, 0, 90, false, interpolation, axis);
      for (int i = 0; i < axis.count; ++i) {
        std::int64_t sum = 0;
        for (int p = 0; p < axis.pairs; ++p) {
          const TapPair& pair = axis.weight[static_cast<std::size_t>(i) * static_cast<std::size_t>(axis.pairs) +
                                            static_cast<std::size_t>(p)];
          for (int k = 0; k < 2; ++k) sum += pair.high[k] * (1 << kLowBits) + pair.low[k];
        }
        EXPECT_NEAR(static_cast<double>(sum), 1 << kWeightBits, axis.taps[static_cast<std::size_t>(i)]);
      }
    }
}

TEST(Orientation, StoredBoxIsWhatIsShownThere) {
  // A stored picture of 40 × 20; orientation 6 shows it 20 wide and 40 high, its left side at the top.
  EXPECT_EQ(stored_box({0, 0, 20, 5}, 6, 40, 20), (IntBox{0, 0, 5, 20}));
  EXPECT_EQ(stored_box({0, 0, 20, 5}, 8, 40, 20), (IntBox{35, 0, 5, 20}));
  EXPECT_EQ(stored_box({0, 0, 10, 5}, 3, 40, 20), (IntBox{30, 15, 10, 5}));
  EXPECT_EQ(stored_box({1, 2, 3, 4}, 1, 40, 20), (IntBox{1, 2, 3, 4}));
}

TEST(Exif, OrientationIsReadInBothByteOrdersAndElseFromXmp) {
  const std::string little = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s;
  const std::string big = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"s;
  EXPECT_EQ(exif_orientation(bytes(little)), 6);
  EXPECT_EQ(exif_orientation(bytes("Exif\0\0"s + big)), 6);
  EXPECT_EQ(orientation({}, bytes("<x tiff:Orientation=\"3\"/>")), 3);
  EXPECT_EQ(orientation(bytes(little), bytes("tiff:Orientation>3<")), 6);
}

TEST(Exif, DamageIsNoOrientationAndNoCrash) {
  const std::string whole = "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s;
  for (std::size_t cut = 0; cut < whole.size(); ++cut) EXPECT_EQ(orientation(bytes(whole.substr(0, cut)), {}), 1);
  EXPECT_EQ(orientation(bytes("II*\0\xff\xff\xff\xff"s), {}), 1);
  EXPECT_EQ(orientation({}, bytes("tiff:Orientation=\"")), 1);
  EXPECT_EQ(orientation({}, bytes("tiff:Orientation=\"9\"")), 1);
}

TEST(JpegScan, OnlyAnEndMarkerBehindTheScanMakesItSafeToSkip) {
  EXPECT_EQ(scan_end(bytes("\1\2\xff\0\3\xff\xd0\4\xff\xd9"s)), ScanEnd::kPlain);
  EXPECT_EQ(scan_end(bytes("\1\2\xff\xff\0\3\xff\xd9"s)), ScanEnd::kFilled);
  EXPECT_EQ(scan_end(bytes("\1\2\xff\0\3\xff\xd0\4\xff\xff\xd9"s)), ScanEnd::kFilled);
  EXPECT_EQ(scan_end(bytes("\1\2\xff\0\3"s)), ScanEnd::kUnknown);
  EXPECT_EQ(scan_end(bytes("\1\xff\xda\2\xff\xd9"s)), ScanEnd::kUnknown);
  EXPECT_EQ(scan_end(bytes("\1\xff"s)), ScanEnd::kUnknown);
  EXPECT_EQ(scan_end({}), ScanEnd::kUnknown);
}

TEST(Open, HeaderOverThePixelLimitIsRefused) {
  ImageDecoder decoder;
  const std::string bomb = leaf_that_claims(65500, 65500);
  const Result<ImageInfo> info = decoder.open(file(bomb));
  EXPECT_EQ(info.code(), ErrorCode::kBadInput);
  EXPECT_NE(info.error().message.find("65500x65500 = 4290250000 pixels"), std::string::npos) << info.error().message;
}

TEST(Open, HugeHeaderIsReadWithoutAllocatingForIt) {
  DecoderOptions options;
  options.max_pixels = std::numeric_limits<std::uint64_t>::max();
  ImageDecoder decoder(options);
  const std::string bomb = leaf_that_claims(65500, 65500);
  const struct mallinfo2 before = mallinfo2();
  const Result<ImageInfo> info = decoder.open(file(bomb));
  const struct mallinfo2 after = mallinfo2();
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->width, 65500);
  EXPECT_LT(after.uordblks + after.hblkhd, before.uordblks + before.hblkhd + (1u << 20));
}

TEST(Open, EmptyFileAndForeignFileSayWhatTheyAre) {
  ImageDecoder decoder;
  EXPECT_EQ(decoder.open({}).code(), ErrorCode::kBadInput);
  const Result<ImageInfo> page = decoder.open(file("<!DOCTYPE html><title>404</title>"));
  EXPECT_EQ(page.code(), ErrorCode::kUnsupported);
  EXPECT_NE(page.error().message.find("an HTML page"), std::string::npos);
}

TEST(Render, FailedOpenLeavesNothingToRender) {
  ImageDecoder decoder;
  const std::string leaf = picture("leaf_baseline.jpg");
  ASSERT_TRUE(decoder.open(file(leaf)).ok());
  EXPECT_FALSE(decoder.open(file("rubbish")).ok());
  EXPECT_EQ(decoder.rgb().code(), ErrorCode::kBadInput);
}

// One decoder serves all formats in turn, a damaged file between whole ones.
TEST(Render, DecoderIsAsNewAfterADamagedFile) {
  ImageDecoder decoder;
  const auto decode = [&](const std::string& name) {
    const std::string data = picture(name);
    const Result<ImageInfo> info = decoder.open(file(data));
    return info.ok() ? decoder.rgb() : Result<std::vector<std::uint8_t>>(info.error());
  };
  const std::vector<std::uint8_t> leaf = *decode("leaf_baseline.jpg");
  EXPECT_EQ(decode("leaf_truncated_60.jpg").code(), ErrorCode::kCorrupt);
  EXPECT_EQ(*decode("leaf_progressive.jpg"), leaf);
  EXPECT_TRUE(decode("basn3p08.png").ok());
  EXPECT_TRUE(decode("hopper.webp").ok());
  EXPECT_EQ(*decode("leaf_baseline.jpg"), leaf);
}

TEST(Render, SameFileRendersTwiceTheSame) {
  ImageDecoder decoder;
  const std::string leaf = picture("leaf_baseline.jpg");
  ASSERT_TRUE(decoder.open(file(leaf)).ok());
  const Geometry geometry{{30, 40, 150, 160}, 64, 48, {0, 0, 64, 48}, true, Interpolation::kBicubic};
  PixelOptions pixels;
  pixels.type = PixelType::kUint8Nhwc;
  std::vector<std::uint8_t> first(64 * 48 * 3);
  std::vector<std::uint8_t> second(first.size());
  ASSERT_TRUE(decoder.render(geometry, pixels, first.data()).ok());
  ASSERT_TRUE(decoder.render(geometry, pixels, second.data()).ok());
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace stoker::feed
