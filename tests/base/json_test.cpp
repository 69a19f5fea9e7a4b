#include "stoker/base/json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stoker {
namespace {

TEST(Json, PrintsWhatItParsedInTheSameOrder) {
  const std::string text = R"({"b":1,"a":[true,null,-2.5,"x\"y"],"c":{}})";
  EXPECT_EQ(Json::parse(text)->dump(), text);
}

TEST(Json, NamesTheByteOfTheFault) {
  const auto bad = Json::parse(R"({"a": nope})");
  EXPECT_EQ(bad.code(), ErrorCode::kCorrupt);
  EXPECT_NE(bad.error().message.find("byte 8"), std::string::npos) << bad.error().message;
}

TEST(Json, RefusesDeepNestingAndOversize) {
  EXPECT_EQ(Json::parse(std::string(100'000, '[')).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(Json::parse("[1,2,3]", 3).code(), ErrorCode::kBadInput);
}

TEST(Json, WritesNoNumberThatJsonLacks) {
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  EXPECT_EQ(Json("\xff").dump(), "\"\xef\xbf\xbd\"");
}

TEST(Json, AnUnavailableSignalSaysWhy) {
  EXPECT_EQ(Json(Signal<int>::unavailable("no NVML")).dump(), R"({"value":null,"why":"no NVML"})");
  EXPECT_EQ(Json(Signal<int>(0)).dump(), R"({"value":0})");
}

TEST(Json, AMissingMemberIsNull) {
  const Json value = Json::object({{"a", 1}});
  EXPECT_TRUE(value["b"]["c"].is_null());
  EXPECT_EQ(value["a"].as_int(), 1);
  EXPECT_EQ(value["a"].as_string(), "");
}

}  // namespace
}  // namespace stoker
