#include "feed/check/listing.h"

#include <algorithm>
#include <array>
#include <system_error>

#include "stoker/base/text.h"
#include "stoker/feed/dataset.h"

namespace stoker::feed {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSplits = {"train", "val", "valid", "validation", "test"};

bool is_hidden(const std::string& name) { return name[0] == '.'; }

std::vector<std::string> subfolders(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored)) names.push_back(it->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class Lister {
 public:
  explicit Lister(const fs::path& directory) : directory_(directory) {}

  Status run() {
    std::vector<std::string> folders = visible(directory_, "");
    const bool splits = !folders.empty() && std::all_of(folders.begin(), folders.end(), [](const std::string& name) {
      return std::find(kSplits.begin(), kSplits.end(), name) != kSplits.end();
    });
    if (!splits) return classes_of("", folders);
    for (const std::string& split : folders) STOKER_TRY(classes_of(split, visible(directory_ / split, split + "/")));
    return {};
  }

  Listing listing;

 private:
  // Folders that count; the hidden ones are noted.
  std::vector<std::string> visible(const fs::path& directory, const std::string& prefix) {
    std::vector<std::string> names;
    for (const std::string& name : subfolders(directory)) {
      if (is_hidden(name)) {
        listing.hidden.push_back(prefix + name);
      } else {
        names.push_back(name);
      }
    }
    return names;
  }

  Status classes_of(const std::string& split, const std::vector<std::string>& names) {
    const std::string prefix = split.empty() ? "" : split + "/";
    for (const std::string& name : names) {
      listing.classes.push_back({split, name, 0});
      STOKER_TRY(pictures_of(prefix + name, true));
    }
    // Pictures beside the class folders, or in a folder without any.
    listing.classes.push_back({split, "", 0});
    STOKER_TRY(pictures_of(split, false));
    if (listing.classes.back().files == 0) listing.classes.pop_back();
    return {};
  }

  // Adds the pictures of `folder` to the last class.
  Status pictures_of(const std::string& folder, bool deep) {
    std::vector<std::string> found;
    std::error_code error;
    fs::recursive_directory_iterator it(directory_ / folder, fs::directory_options::follow_directory_symlink, error);
    for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      const std::string name = it->path().filename();
      std::error_code ignored;
      if (it->is_directory(ignored)) {
        if (deep && is_hidden(name)) listing.hidden.push_back(it->path().lexically_relative(directory_));
        if (!deep || is_hidden(name) || it.depth() > 64) it.disable_recursion_pending();
      } else if (has_image_extension(name) && name[0] != '.') {
        found.push_back(it->path().lexically_relative(directory_));
      } else if (name[0] != '.') {
        ++listing.other_files;
      }
    }
    if (error) return errno_error(error.value(), "cannot list " + printable((directory_ / folder).native()));
    std::sort(found.begin(), found.end());
    listing.classes.back().files += found.size();
    for (std::string& path : found) listing.files.push_back({std::move(path), listing.classes.size() - 1});
    return {};
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
  STOKER_TRY(lister.run());
  return std::move(lister.listing);
}

}  // namespace stoker::feed
