#include "stoker/base/files.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "stoker/base/run_directory.h"
#include "support/temp_dir.h"

namespace stoker {
namespace {

using testing::read_file;
using testing::TempDir;

TEST(WriteFileDurably, ReplacesTheFileAndLeavesNothingElse) {
  const TempDir dir;
  const auto path = dir.write("run.json", "old");
  ASSERT_TRUE(write_file_durably(FileSystem::real(), path, "new").ok());
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(FileSystem::real().list(dir.path())->size(), 1U);
}

TEST(WriteFileDurably, NamesTheMissingDirectory) {
  const TempDir dir;
  const Status status = write_file_durably(FileSystem::real(), dir / "absent/x", "bytes");
  EXPECT_EQ(status.code(), ErrorCode::kNotFound);
  EXPECT_NE(status.error().message.find("absent"), std::string::npos);
}

TEST(DirectWrites, KeepAnOddTail) {
  const TempDir dir;
  std::string bytes(3 * 4096 + 17, 'x');
  auto* aligned = static_cast<char*>(std::aligned_alloc(4096, 4 * 4096));
  bytes.copy(aligned, bytes.size());
  {
    auto file = FileSystem::real().create(dir / "f", WriteMode::kDirect);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->append(std::as_bytes(std::span(aligned, bytes.size()))).ok());
    ASSERT_TRUE((*file)->sync().ok());
    ASSERT_TRUE((*file)->close().ok());
  }
  std::free(aligned);
  EXPECT_EQ(read_file(dir / "f"), bytes);
}

TEST(ReadFile, StopsAtItsLimit) {
  const TempDir dir;
  const auto path = dir.write("big", std::string(1000, 'x'));
  EXPECT_EQ(FileSystem::real().read(path, 999).code(), ErrorCode::kBadInput);
  EXPECT_EQ(FileSystem::real().read(path, 1000)->size(), 1000U);
}

TEST(FindRun, TakesTheNewestOrAUniquePart) {
  const TempDir dir;
  const auto first = create_run_directory(dir.path(), "leaf net!");
  const auto second = create_run_directory(dir.path(), "other");
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE(write_run_json(FileSystem::real(), *second, Json::object()).ok());
  ASSERT_TRUE(write_run_json(FileSystem::real(), *first, Json::object()).ok());
  EXPECT_EQ(*find_run(dir.path(), ""), *first);
  EXPECT_EQ(*find_run(dir.path(), second->filename().native().substr(17)), *second);
  EXPECT_EQ(find_run(dir.path(), "nothing").code(), ErrorCode::kNotFound);
  EXPECT_EQ(find_run(dir.path(), "2").code(), ErrorCode::kBadInput);
}

}  // namespace
}  // namespace stoker
