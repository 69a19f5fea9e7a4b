// What stage makes of first bytes, member names and damaged zip directories; whole runs are in
// tests/python/test_stage.py.
#include "stoker/feed/stage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "feed/stage/sniff.h"
#include "feed/stage/target.h"
#include "feed/stage/zip_directory.h"
#include "stoker/base/hash.h"
#include "support/temp_dir.h"

namespace stoker::feed {
namespace {

using namespace std::string_literals;
using testing::TempDir;

std::string little(std::uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

// A zip of one stored member; figures of the directory can be forged.
struct ZipForge {
  std::string name = "a.txt";
  std::string text = "hello";
  std::uint32_t crc_xor = 0;
  std::uint64_t count = 1;
  std::uint64_t declared = 5;
  std::uint64_t directory_offset_add = 0;

  std::string bytes() const {
    const std::uint32_t crc = crc32(std::as_bytes(std::span(text))) ^ crc_xor;
    const std::string figures = little(crc, 4) + little(text.size(), 4) + little(declared, 4);
    const std::string local = "PK\3\4"s + little(20, 2) + little(0, 2) + little(0, 2) + little(0, 4) + figures +
                              little(name.size(), 2) + little(0, 2) + name + text;
    const std::string member = "PK\1\2"s + little(20, 2) + little(20, 2) + little(0, 2) + little(0, 2) + little(0, 4) +
                               figures + little(name.size(), 2) + little(0, 2) + little(0, 2) + little(0, 4) +
                               little(0, 4) + little(0, 4) + name;
    return local + member + "PK\5\6"s + little(0, 4) + little(count, 2) + little(count, 2) + little(member.size(), 4) +
           little(local.size() + directory_offset_add, 4) + little(0, 2);
  }
};

class StageTest : public ::testing::Test {
 protected:
  Result<StageResult> stage_bytes(const std::string& bytes, const StageOptions& options = {}) {
    return stage(dir_.write("a.zip", bytes), dir_ / "out", options);
  }
  bool nothing_left() const { return !std::filesystem::exists(dir_ / "out"); }

  TempDir dir_;
};

TEST_F(StageTest, WholeZipIsUnpacked) {
  const auto result = stage_bytes(ZipForge{}.bytes());
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->files, 1U);
  EXPECT_EQ(testing::read_file(dir_ / "out/a.txt"), "hello");
}

TEST_F(StageTest, FlippedByteFailsTheChecksum) {
  const auto result = stage_bytes(ZipForge{.crc_xor = 1}.bytes());
  ASSERT_EQ(result.code(), ErrorCode::kCorrupt);
  EXPECT_NE(result.error().message.find("member 'a.txt' fails its checksum: stored"), std::string::npos);
  EXPECT_TRUE(nothing_left());
}

TEST_F(StageTest, DirectoryWithAnotherCountIsRefused) {
  const auto result = stage_bytes(ZipForge{.count = 3}.bytes());
  ASSERT_EQ(result.code(), ErrorCode::kCorrupt);
  EXPECT_NE(result.error().message.find("its directory names 3 members and holds 1"), std::string::npos);
}

// The declared size is what the space check believed; more is never written.
TEST_F(StageTest, MemberLongerThanDeclaredIsRefused) {
  const auto result = stage_bytes(ZipForge{.declared = 4}.bytes());
  ASSERT_EQ(result.code(), ErrorCode::kCorrupt);
  EXPECT_NE(result.error().message.find("holds more than the 4 bytes it declares"), std::string::npos);
  EXPECT_TRUE(nothing_left());
}

TEST_F(StageTest, EveryCutOfAZipIsRefused) {
  const std::string whole = ZipForge{}.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(stage_bytes(whole.substr(0, size)).ok()) << size;
    EXPECT_TRUE(nothing_left()) << size;
  }
}

TEST_F(StageTest, EveryFlippedByteIsRefusedOrHarmless) {
  const std::string whole = ZipForge{}.bytes();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x5A);
    const auto result = stage_bytes(flipped);
    if (result.ok()) {
      EXPECT_EQ(result->bytes, 5U) << at;
    }
    std::filesystem::remove_all(dir_ / "out");
  }
}

TEST_F(StageTest, StopOnRequestLeavesNothing) {
  StageOptions options;
  options.cancelled = [] { return true; };
  EXPECT_EQ(stage_bytes(ZipForge{}.bytes(), options).code(), ErrorCode::kCancelled);
  EXPECT_TRUE(nothing_left());
}

TEST_F(StageTest, SecondCallSaysSo) {
  ASSERT_TRUE(stage_bytes(ZipForge{}.bytes()).ok());
  const auto again = stage(dir_ / "a.zip", dir_ / "out");
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->already);
  std::filesystem::remove(dir_ / "out/a.txt");
  const auto after_loss = stage(dir_ / "a.zip", dir_ / "out");
  ASSERT_TRUE(after_loss.ok());
  EXPECT_FALSE(after_loss->already);
}

TEST(SniffTest, WebPageIsToldWithItsTitle) {
  const auto page =
      sniff_bytes("\n<!DOCTYPE html><html><head><title>Google Drive - Quota exceeded</title>", "leaf.zip");
  ASSERT_EQ(page.code(), ErrorCode::kBadInput);
  EXPECT_EQ(page.error().message, "leaf.zip is no archive but a web page: \"Google Drive - Quota exceeded\"");
}

TEST(SniffTest, FirstBytesDecide) {
  EXPECT_EQ(*sniff_bytes("PK\3\4rest", "a.tar"), Packing::kZip);
  EXPECT_EQ(*sniff_bytes("\x28\xB5\x2F\xFDxxxx", "a.zip"), Packing::kTarZst);
  EXPECT_EQ(sniff_bytes("", "a.zip").error().message, "a.zip is empty (0 bytes)");
  EXPECT_EQ(sniff_bytes("Rar!xx", "a.zip").code(), ErrorCode::kUnsupported);
  EXPECT_EQ(sniff_bytes("\x1f\x8b", "a.zip").code(), ErrorCode::kCorrupt);
  EXPECT_EQ(sniff_bytes("{\"error\": 403}", "a.zip").error().message,
            "a.zip is neither a folder nor an archive; it begins with \"{\"error\": 403}\"");
}

TEST(MemberNameTest, OnlyNamesBelowTheFolderAreSafe) {
  EXPECT_EQ(*safe_member_name("./a//b/"), "a/b");
  EXPECT_EQ(*safe_member_name("a/..b/c"), "a/..b/c");
  for (const auto& bad : {"/etc/passwd"s, "../a"s, "a/../../b"s, "a/.."s, ".stoker-stage.json"s, "a\0b"s}) {
    EXPECT_EQ(safe_member_name(bad).code(), ErrorCode::kBadInput) << bad;
  }
}

TEST(TargetTest, LinksThatLeaveTheFolderAreRefused) {
  const auto refused = [](std::vector<std::pair<std::string, std::string>> links) {
    const TempDir dir;
    std::filesystem::create_directories(dir / "in/sub");
    Target target(dir / "in");
    for (const auto& [name, end] : links) {
      if (!target.add_symlink(name, end)) return true;
    }
    return !target.finish().ok();
  };
  EXPECT_FALSE(refused({{"a", "sub"}}));
  EXPECT_FALSE(refused({{"sub/up", "../sub"}}));
  EXPECT_TRUE(refused({{"a", "/etc"}}));
  EXPECT_TRUE(refused({{"a", ".."}}));
  EXPECT_TRUE(refused({{"a", "../not-there-yet"}}));
  EXPECT_TRUE(refused({{"d", "."}, {"e", "d/../not-there-yet"}}));
  EXPECT_TRUE(refused({{"a", ".."}, {"a/evil", "sub"}}));
}

}  // namespace
}  // namespace stoker::feed
