#include "stoker/feed/dataset.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/temp_dir.h"

namespace stoker::feed {
namespace {

using testing::TempDir;

std::vector<std::string> names(const TempDir& root, const FileIndex& index) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < index.size(); ++i)
    out.push_back(std::filesystem::path(index.path(i)).lexically_relative(root.path()).string());
  return out;
}

TEST(FileIndexTest, ClassesAndFilesComeInTorchvisionsOrder) {
  const TempDir root;
  for (const char* name : {"dog/z.jpg", "dog/a.JPEG", "cat/a/b/2.png", "cat/a-b/1.png", "cat/9.webp", "cat/notes.txt"})
    root.write(name, "x");
  const auto index = FileIndex::open_folder(root.path());
  ASSERT_TRUE(index.ok());
  EXPECT_EQ((*index)->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(names(root, **index),
            (std::vector<std::string>{"cat/9.webp", "cat/a-b/1.png", "cat/a/b/2.png", "dog/a.JPEG", "dog/z.jpg"}));
  EXPECT_EQ((*index)->label(2), 0);
  EXPECT_EQ((*index)->label(3), 1);
  EXPECT_EQ((*index)->notes().other_files, 1U);
}

// A notebook's hidden folder would become class 0 and shift every label.
TEST(FileIndexTest, HiddenFoldersAndFilesArePassedOverAndNamed) {
  const TempDir root;
  root.write(".ipynb_checkpoints/cat-checkpoint.jpg", "x");
  root.write("cat/.ipynb_checkpoints/1-checkpoint.jpg", "x");
  root.write("cat/._1.jpg", "x");
  root.write("cat/1.jpg", "x");
  const auto index = FileIndex::open_folder(root.path());
  ASSERT_TRUE(index.ok());
  EXPECT_EQ((*index)->classes(), std::vector<std::string>{"cat"});
  EXPECT_EQ((*index)->size(), 1U);
  auto hidden = (*index)->notes().hidden;
  std::sort(hidden.begin(), hidden.end());
  EXPECT_EQ(hidden, (std::vector<std::string>{".ipynb_checkpoints", "cat/._1.jpg", "cat/.ipynb_checkpoints"}));
}

TEST(FileIndexTest, LinksThatLeadBackAreCut) {
  const TempDir root;
  root.write("cat/1.jpg", "x");
  root.write("dog/1.jpg", "x");
  std::filesystem::create_directory_symlink("..", root / "cat/up");
  std::filesystem::create_directory_symlink(".", root / "self");
  std::filesystem::create_directory_symlink("../cat", root / "dog/more");  // no loop: seen twice, as torchvision does
  const auto index = FileIndex::open_folder(root.path());
  ASSERT_TRUE(index.ok());
  EXPECT_EQ((*index)->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(names(root, **index), (std::vector<std::string>{"cat/1.jpg", "dog/1.jpg", "dog/more/1.jpg"}));
  EXPECT_EQ((*index)->notes().looping, (std::vector<std::string>{"cat/up", "dog/more/up", "self"}));
}

TEST(FileIndexTest, WhatCannotBeAClassFolderSaysWhy) {
  const TempDir root;
  EXPECT_EQ(FileIndex::open_folder(root / "absent").code(), ErrorCode::kNotFound);
  EXPECT_NE(FileIndex::open_folder(root.path()).error().message.find("no class folder"), std::string::npos);

  root.write("flat.jpg", "x");
  EXPECT_NE(FileIndex::open_folder(root.path()).error().message.find("1 images but no class folder"),
            std::string::npos);
  EXPECT_EQ(FileIndex::open_folder(root / "flat.jpg").code(), ErrorCode::kBadInput);

  root.write("cat/readme.txt", "x");
  const auto none = FileIndex::open_folder(root.path());
  EXPECT_NE(none.error().message.find("no image in them"), std::string::npos);
  EXPECT_NE(none.error().hint.find(".jpeg"), std::string::npos);

  root.write("dog/1.jpg", "x");
  const auto empty = FileIndex::open_folder(root.path());
  EXPECT_NE(empty.error().message.find("no image in 1 of the 2 classes"), std::string::npos);
  EXPECT_NE(empty.error().message.find("cat"), std::string::npos);
  const auto allowed = FileIndex::open_folder(root.path(), {.allow_empty_classes = true});
  ASSERT_TRUE(allowed.ok());
  EXPECT_EQ((*allowed)->label(0), 1);
}

TEST(FileIndexTest, ReadGivesTheFileAlsoAfterItsFolderWasRenamed) {
  const TempDir root;
  root.write("data/cat/1.jpg", "twelve bytes");
  root.write("data/cat/2.jpg", "");
  const auto index = FileIndex::open_folder(root / "data");
  ASSERT_TRUE(index.ok());
  std::filesystem::rename(root / "data", root / "moved");
  FileBuffer buffer;
  ASSERT_TRUE((*index)->read(0, buffer).ok());
  EXPECT_EQ(buffer.bytes().size(), 12U);
  ASSERT_TRUE((*index)->read(1, buffer).ok());
  EXPECT_TRUE(buffer.bytes().empty());
}

TEST(FileIndexTest, APipeOrAMissingFileIsAnErrorWithItsPath) {
  const TempDir root;
  root.write("cat/1.jpg", "x");
  ASSERT_EQ(::mkfifo((root / "cat/2.jpg").c_str(), 0600), 0);
  const auto index = FileIndex::open_folder(root.path());
  ASSERT_TRUE(index.ok());
  std::filesystem::remove(root / "cat/1.jpg");
  FileBuffer buffer;
  const Status missing = (*index)->read(0, buffer);
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("cat/1.jpg"), std::string::npos);
  EXPECT_EQ((*index)->read(1, buffer).code(), ErrorCode::kBadInput);
}

TEST(FileIndexTest, AListKeepsItsOrderAndRefusesLabelsThatDoNotFit) {
  const auto index = FileIndex::from_list({{"/b/2.jpg", 1}, {"/a/1.jpg", 0}, {"x.jpg", 1}}, {"no", "yes"});
  ASSERT_TRUE(index.ok());
  EXPECT_EQ((*index)->path(0), "/b/2.jpg");
  EXPECT_EQ((*index)->path(1), "/a/1.jpg");
  EXPECT_EQ((*index)->path(2), "x.jpg");
  EXPECT_EQ(FileIndex::from_list({}).code(), ErrorCode::kBadInput);
  const auto bad = FileIndex::from_list({{"/a/1.jpg", 2}}, {"no", "yes"});
  EXPECT_NE(bad.error().message.find("label 2 of /a/1.jpg is outside [0, 2)"), std::string::npos);
}

TEST(PackedNamesTest, AMillionSamplesCostLessThan64BytesEachBesideTheirNames) {
  PackedNames names;
  const std::uint32_t folder = names.add_folder("class");
  const std::string name = "image-000000.jpg";
  for (int i = 0; i < 1'000'000; ++i) names.add(folder, name, 3);
  EXPECT_LE(names.memory_bytes(), 1'000'000U * (64 + name.size()));
  EXPECT_EQ(names.path(999'999), "class/image-000000.jpg");
}

}  // namespace
}  // namespace stoker::feed
