// Reads a class folder's tree. Private to the rooms dataset and check.
#pragma once

#include "stoker/feed/dataset.h"

namespace stoker::feed {

struct FolderListing {  // names, sorted
  std::vector<std::string> folders;
  std::vector<std::string> files;
  std::vector<std::string> hidden;  // of both kinds
};

// What lies in one folder; links count as what they lead to. Errors: kIo (it cannot be read).
Result<FolderListing> list_folder(const std::filesystem::path& folder);

struct ScannedFolder {
  PackedNames names;
  std::vector<std::string> classes;
  std::vector<std::string> loose;  // images beside the class folders; they have no class
  FolderNotes notes;
};

// The tree as open_folder() reads it, whatever is missing in it. Errors: kNotFound, kBadInput (a file), kIo.
Result<ScannedFolder> scan_tree(const std::filesystem::path& root);

// See FileIndex::open_folder().
Result<ScannedFolder> scan_class_folder(const std::filesystem::path& root, FolderOptions options);

}  // namespace stoker::feed
