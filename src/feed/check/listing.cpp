#include "feed/check/listing.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "feed/dataset/scan.h"
#include "stoker/base/text.h"

namespace stoker::feed {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSplits = {"train", "val", "valid", "validation", "test"};

bool is_split(const std::string& name) { return std::find(kSplits.begin(), kSplits.end(), name) != kSplits.end(); }

// Adds what the loader would see of `folder`, and the pictures that it would pass over for lying in no class.
class Lister {
 public:
  explicit Lister(const fs::path& directory) : directory_(directory) {}

  Status add(const std::string& split) {
    const std::string prefix = split.empty() ? "" : split + "/";
    const auto scanned = scan_tree(directory_ / split);
    if (!scanned) return scanned.error();
    const std::size_t first = listing.classes.size();
    for (const std::string& name : scanned->classes) listing.classes.push_back({split, name, 0});
    for (std::size_t i = 0; i < scanned->names.size(); ++i)
      add_file(prefix + scanned->names.path(i), first + scanned->names.label(i));
    if (!scanned->loose.empty()) listing.classes.push_back({split, "", 0});
    for (const std::string& file : scanned->loose) add_file(prefix + file, listing.classes.size() - 1);
    listing.other_files += scanned->notes.other_files - scanned->loose.size();
    add_hidden_folders(prefix, scanned->notes.hidden);
    for (const std::string& folder : scanned->notes.looping) listing.looping.push_back(prefix + folder);
    return {};
  }

  void add_hidden_folders(const std::string& prefix, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      std::error_code ignored;
      if (fs::is_directory(directory_ / (prefix + name), ignored)) listing.hidden.push_back(prefix + name);
    }
  }

  Listing listing;

 private:
  void add_file(std::string path, std::size_t class_index) {
    listing.files.push_back({std::move(path), class_index});
    ++listing.classes[class_index].files;
  }

  const fs::path directory_;
};

}  // namespace

Result<Listing> list_pictures(const fs::path& directory) {
  std::error_code error;
  const auto status = fs::status(directory, error);
  if (!fs::exists(status)) {
    return Error{ErrorCode::kNotFound, "there is no folder " + printable(directory.native()), "check the path"};
  }
  if (!fs::is_directory(status)) {
    return Error{ErrorCode::kBadInput, printable(directory.native()) + " is a file, not a folder",
                 "an archive is unpacked with `stoker stage` first"};
  }
  Lister lister(directory);
  const auto top = list_folder(directory);
  if (!top) return top.error();
  if (top->folders.empty() || !std::all_of(top->folders.begin(), top->folders.end(), is_split)) {
    STOKER_TRY(lister.add(""));
  } else {
    lister.add_hidden_folders("", top->hidden);
    for (const std::string& split : top->folders) STOKER_TRY(lister.add(split));
  }
  return std::move(lister.listing);
}

}  // namespace stoker::feed
