#include "stoker/base/units.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using namespace std::chrono_literals;

TEST(ParseSize, KnowsDecimalAndBinaryUnits) {
  EXPECT_EQ(*parse_size("4GB"), 4'000'000'000U);
  EXPECT_EQ(*parse_size("4GiB"), std::uint64_t{1} << 32);
  EXPECT_EQ(*parse_size(" 1.5 mb "), 1'500'000U);
  EXPECT_EQ(*parse_size("4G"), 4'000'000'000U);
  EXPECT_EQ(*parse_size("512"), 512U);
}

TEST(ParseSize, RefusesWhatIsNoSize) {
  for (const char* text : {"", "GB", "-1", "4XB", "1e9", "nan", "9999999PB", "4 G B"}) {
    EXPECT_EQ(parse_size(text).code(), ErrorCode::kBadInput) << text;
  }
}

TEST(ParseDuration, AddsItsParts) {
  EXPECT_EQ(*parse_duration("40m"), 40min);
  EXPECT_EQ(*parse_duration("1h30m"), 90min);
  EXPECT_EQ(*parse_duration("250ms"), 250ms);
  EXPECT_EQ(*parse_duration("1.5 h"), 90min);
  EXPECT_EQ(*parse_duration("90"), 90s);
}

TEST(ParseDuration, RefusesWhatIsNoDuration) {
  for (const char* text : {"", "m", "4 parsecs", "1h-3m", "inf"}) {
    EXPECT_EQ(parse_duration(text).code(), ErrorCode::kBadInput) << text;
  }
}

TEST(Format, KeepsThreeDigits) {
  EXPECT_EQ(format_size(999), "999 B");
  EXPECT_EQ(format_size(1'234'567), "1.23 MB");
  EXPECT_EQ(format_size(999'999), "1.00 MB");
  EXPECT_EQ(format_duration(12'340us), "12.3 ms");
  EXPECT_EQ(format_duration(185s), "3 min 5 s");
  EXPECT_EQ(format_duration(130min), "2 h 10 min");
  EXPECT_EQ(format_duration(-5ms), "-5.00 ms");
  EXPECT_EQ(format_duration(std::chrono::nanoseconds::min()), "-2562047 h 47 min");
  EXPECT_EQ(format_count(1854), "1,854");
  EXPECT_EQ(format_count(100), "100");
}

}  // namespace
}  // namespace stoker
