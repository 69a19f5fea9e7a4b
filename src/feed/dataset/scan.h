// Reads a class folder's tree. Private to the dataset room.
#pragma once

#include "stoker/feed/dataset.h"

namespace stoker::feed {

struct ScannedFolder {
  PackedNames names;
  std::vector<std::string> classes;
  FolderNotes notes;
};

// See FileIndex::open_folder().
Result<ScannedFolder> scan_class_folder(const std::filesystem::path& root, FolderOptions options);

}  // namespace stoker::feed
