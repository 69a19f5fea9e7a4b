#include "stoker/feed/dataset.h"

namespace stoker::feed {

std::uint32_t PackedNames::add_folder(std::string path) {
  if (!path.empty() && path.back() != '/') path += '/';
  folders_.push_back(std::move(path));
  return static_cast<std::uint32_t>(folders_.size() - 1);
}

void PackedNames::add(std::uint32_t folder, std::string_view file_name, std::uint32_t label) {
  records_.push_back({names_.size(), folder, label});
  names_.append(file_name);
  names_.push_back('\0');
}

std::string PackedNames::path(std::size_t i) const {
  const Record& record = records_[i];
  return folders_[record.folder] + (names_.c_str() + record.name);
}

std::size_t PackedNames::memory_bytes() const {
  std::size_t folders = 0;
  for (const std::string& folder : folders_) folders += sizeof(folder) + folder.capacity();
  return names_.capacity() + records_.capacity() * sizeof(Record) + folders;
}

}  // namespace stoker::feed
