// Damage of every kind is found, named and never crashes or takes memory that the file does not have.
#include "save/store/manifest.h"
#include "save/store/safetensors.h"
#include "save/store_support.h"
#include "stoker/base/hash.h"

namespace stoker::save::testing {
namespace {

const std::filesystem::path kManifest = kDir / "step-2/manifest.json";
const std::filesystem::path kPart = kDir / "step-2/part-2.safetensors";

class StoreDamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = open_store(fs_, {.last = 0});
    ASSERT_TRUE(save_and_wait(*store_, 1).ok());
    const Sample sample(2);
    ASSERT_TRUE(store_->save(2, sample.views(), Sample::options(2)).ok());
    ASSERT_TRUE(store_->wait().ok());
  }
  // The text of the error, after checking that it is one of damage and that the older step is loaded instead.
  std::string expect_damaged() {
    const auto direct = store_->load(2);
    EXPECT_EQ(direct.code(), ErrorCode::kCorrupt);
    const auto newest = store_->load();
    EXPECT_TRUE(newest.ok() && is_sample(*newest, 1));
    if (newest) {
      EXPECT_EQ(newest->skipped.size(), 1U);
    }
    EXPECT_EQ(store_->verify()->size(), 1U);
    return direct.ok() ? "" : direct.error().message;
  }
  FakeFs fs_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreDamageTest, AFlippedBitAnywhereInThePartIsFound) {
  std::string& bytes = fs_.bytes(kPart);
  const std::size_t stride = 97;
  for (std::size_t at = 0; at < bytes.size(); at += stride) {
    SCOPED_TRACE(at);
    bytes[at] ^= 0x10;
    ASSERT_EQ(store_->load(2).code(), ErrorCode::kCorrupt);
    bytes[at] ^= 0x10;
  }
  EXPECT_TRUE(store_->load(2).ok());
}

TEST_F(StoreDamageTest, AFlippedBitAnywhereInTheManifestIsFound) {
  std::string& bytes = fs_.bytes(kManifest);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    SCOPED_TRACE(at);
    bytes[at] ^= 0x01;
    ASSERT_EQ(store_->load(2).code(), ErrorCode::kCorrupt);
    bytes[at] ^= 0x01;
  }
}

TEST_F(StoreDamageTest, TheTensorTheFileAndBothHashesAreNamed) {
  const auto tensor = store_->describe(2)->tensors[0];
  fs_.bytes(kPart)[tensor.offset + 5] ^= 1;
  const std::string text = expect_damaged();
  EXPECT_NE(text.find("tensor model.moves fails its hash"), std::string::npos) << text;
  EXPECT_NE(text.find("/runs/leaf/step-2/part-2.safetensors, offset " + std::to_string(tensor.offset)),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("stored " + tensor.hash), std::string::npos) << text;
  EXPECT_NE(text.find("computed "), std::string::npos) << text;
}

TEST_F(StoreDamageTest, TruncationIsFoundAtEveryLength) {
  std::string& bytes = fs_.bytes(kPart);
  const std::string whole = bytes;
  for (std::size_t size = 0; size < whole.size(); size += 1009) {
    bytes = whole.substr(0, size);
    ASSERT_EQ(store_->load(2).code(), ErrorCode::kCorrupt) << size;
  }
  bytes = whole + "x";
  EXPECT_NE(expect_damaged().find("its manifest says"), std::string::npos);
}

TEST_F(StoreDamageTest, AMissingPartOrManifestIsFound) {
  ASSERT_TRUE(fs_.remove(kPart).ok());
  EXPECT_NE(expect_damaged().find("part-2.safetensors"), std::string::npos);
  ASSERT_TRUE(fs_.remove(kManifest).ok());
  EXPECT_EQ(store_->load()->info.step, 1);
}

TEST_F(StoreDamageTest, WithNothingWholeTheNewestIsNamed) {
  fs_.bytes(kManifest).clear();
  fs_.bytes(kDir / "step-1/manifest.json").resize(40);
  const auto loaded = store_->load();
  EXPECT_EQ(loaded.code(), ErrorCode::kCorrupt);
}

// Manifests whose own hash is right, and which lie.
TEST_F(StoreDamageTest, AManifestThatLiesIsCorrupt) {
  const std::string good = fs_.bytes(kManifest);
  const auto forge = [&](const std::string& from, const std::string& to) {
    std::string text = good.substr(0, good.size() - 35);
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return text + hash128(text).hex() + "\"}\n";
  };
  const std::vector<std::pair<std::string, std::string>> lies = {
      {"\"part-2.safetensors\"", "\"../../../etc/passwd\""},
      {"\"part-2.safetensors\"", "\"part-2/../x.safetensors\""},
      {"\"shape\":[5000]", "\"shape\":[9223372036854775807]"},
      {"\"shape\":[5000]", "\"shape\":[4611686018427387904,4,0]"},
      {"\"shape\":[5000]", "\"shape\":[-1]"},
      {"\"shape\":[5000]", "\"shape\":[5001]"},
      {"\"dtype\":\"F32\"", "\"dtype\":\"F64\""},
      {"\"dtype\":\"F32\"", "\"dtype\":\"\""},
      {"\"part\":0", "\"part\":7"},
      {"\"offset\":", "\"offset\":9223372036854775807,\"was\":"},
      {"\"offset\":", "\"offset\":-1,\"was\":"},
      {"\"offset\":", "\"offset\":1e300,\"was\":"},
      {"\"size_bytes\":", "\"size_bytes\":9223372036854775807,\"was\":"},
      {"\"header_bytes\":", "\"header_bytes\":9223372036854775807,\"was\":"},
      {"\"header_bytes\":", "\"header_bytes\":0,\"was\":"},
      {"\"model.moves\"", "\"model.frozen\""},
      {"\"tensors\":", "\"tensors\":{},\"was\":"},
      {"\"parts\":", "\"parts\":[1],\"was\":"},
      {"\"step\":2", "\"step\":-2"},
  };
  for (const auto& [from, to] : lies) {
    SCOPED_TRACE(from + " → " + to);
    fs_.bytes(kManifest) = forge(from, to);
    EXPECT_EQ(store_->load(2).code(), ErrorCode::kCorrupt);
  }
  fs_.bytes(kManifest) = forge("stoker.checkpoint.v1", "stoker.checkpoint.v9");
  EXPECT_EQ(store_->load(2).code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(is_sample(*store_->load(), 1));
}

std::string with_length(std::uint64_t length, const std::string& json) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes + json;
}

TEST(SafetensorsHeader, HostileOnesAreCorrupt) {
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& range) {
    return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + range + "}}";
  };
  const std::vector<std::string> headers = {
      "",
      "[]",
      "{",
      "nonsense",
      "{\"a\":1}",
      "{\"a\":{}}",
      entry("F32", "[2]", "[0,9]"),
      entry("F32", "[2]", "[0,7]"),
      entry("F32", "[2]", "[8,0]"),
      entry("F32", "[2]", "[4,12]"),
      entry("F32", "[2]", "[0]"),
      entry("F99", "[2]", "[0,8]"),
      entry("F32", "[9223372036854775807,9223372036854775807]", "[0,8]"),
      entry("F32", "[18446744073709551615]", "[0,8]"),
      entry("F32", "[-2]", "[0,8]"),
      entry("F32", "[2.5]", "[0,8]"),
      entry("U8", "[9223372036854775807]", "[0,9223372036854775807]"),
  };
  for (const std::string& json : headers) {
    const std::string bytes = with_length(json.size(), json);
    EXPECT_EQ(parse_header(bytes, bytes.size() + 8).code(), ErrorCode::kCorrupt) << json;
  }
  for (const std::uint64_t length : {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{200'000'000}})
    EXPECT_EQ(parse_header(with_length(length, "{}"), 1000).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(parse_header("short", 5).code(), ErrorCode::kCorrupt);
  const std::string good = entry("F32", "[2]", "[0,8]");
  EXPECT_TRUE(parse_header(with_length(good.size(), good), 8 + good.size() + 8).ok());
}

TEST(SafetensorsHeader, WritesWhatItReads) {
  std::vector<TensorEntry> entries = {
      {"b \"quoted\" é", "F64", {2, 3}, 0, 48}, {"s", "F32", {}, 0, 4}, {"none", "U8", {0, 7}, 0, 0}};
  const std::string header = make_header(entries);
  EXPECT_EQ(header.size() % kDataAlignment, 0U);
  const auto read = parse_header(header, header.size() + 52);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ((*read)[0].name, entries[0].name);
  EXPECT_EQ((*read)[1].offset, header.size() + 48);
}

}  // namespace
}  // namespace stoker::save::testing
