// The pictures below a folder, by split and class. Private to the room.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "stoker/base/status.h"
#include "stoker/feed/check.h"

namespace stoker::feed {

struct ListedFile {
  std::string path;  // relative to the folder
  std::size_t class_index = 0;
};

struct Listing {
  std::vector<CheckedClass> classes;
  std::vector<ListedFile> files;     // in the loader's order within a class
  std::vector<std::string> hidden;   // folders, not files
  std::vector<std::string> looping;  // folders that lead back to one above them
  std::uint64_t other_files = 0;
};

Result<Listing> list_pictures(const std::filesystem::path& directory);

}  // namespace stoker::feed
