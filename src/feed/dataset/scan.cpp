#include "feed/dataset/scan.h"

#include <dirent.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace stoker::feed {
namespace {

constexpr std::array<std::string_view, 9> kExtensions = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                                         ".pgm", ".tif",  ".tiff", ".webp"};
constexpr std::size_t kNamesKept = 20;  // of each kind of note

struct FolderIdentity {
  dev_t device;
  ino_t inode;
  friend bool operator==(const FolderIdentity&, const FolderIdentity&) = default;
};

void note(std::vector<std::string>& names, const std::string& name) {
  if (names.size() < kNamesKept) names.push_back(name);
}

// As torchvision sees it: what a name leads to counts, and what leads nowhere is a file (reading it will say so).
bool is_folder(DIR* in, const dirent& entry) {
  if (entry.d_type == DT_DIR) return true;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return false;
  struct stat info {};
  return ::fstatat(::dirfd(in), entry.d_name, &info, 0) == 0 && S_ISDIR(info.st_mode);
}

// One walk over a tree; gathers notes as it goes.
class Scan {
 public:
  explicit Scan(const std::filesystem::path& root) : root_(root) {}

  // Names in `folder` (relative to the root); hidden ones are noted instead.
  Result<FolderListing> list(const std::string& folder) {
    auto listing = list_folder(root_ / folder);
    if (!listing) return listing;
    for (const std::string& name : listing->hidden) scanned_.notes.hidden.push_back(folder + name);
    return listing;
  }

  Status add_class(const std::string& name) {
    const auto label = static_cast<std::uint32_t>(scanned_.classes.size());
    scanned_.classes.push_back(name);
    std::vector<std::pair<std::string, std::vector<std::string>>> folders;
    STOKER_TRY(walk(name, folders));
    // torchvision sorts whole folder paths as strings: "cat/a-b" comes before "cat/a/b".
    std::sort(folders.begin(), folders.end());
    if (!scanned_.notes.looping.empty() && scanned_.notes.looping.back() == name) {
      scanned_.classes.pop_back();  // no class of its own, but a link to the root
      return {};
    }
    const std::size_t before = scanned_.names.size();
    for (auto& [folder, files] : folders) {
      const std::uint32_t number = scanned_.names.add_folder(folder);
      for (const std::string& file : files) scanned_.names.add(number, file, label);
    }
    if (scanned_.names.size() == before) scanned_.notes.empty.push_back(name);
    return {};
  }

  // Marks the folder that the walk starts from, so that a link back to it is seen.
  Status enter_root() { return enter(""); }

  void count_other(const std::string& file) {
    ++scanned_.notes.other_files;
    note(scanned_.notes.other_names, file);
  }

  ScannedFolder& scanned() { return scanned_; }

 private:
  using Folders = std::vector<std::pair<std::string, std::vector<std::string>>>;

  Status enter(const std::string& folder) {
    struct stat info {};
    const std::string path = (root_ / folder).string();
    if (::stat(path.c_str(), &info) != 0) return errno_error(errno, "cannot stat the folder " + path);
    above_.push_back({info.st_dev, info.st_ino});
    return {};
  }

  bool leads_back() const { return std::find(above_.begin(), above_.end() - 1, above_.back()) != above_.end() - 1; }

  // Adds `folder` and what lies under it to `out`.
  Status walk(const std::string& folder, Folders& out) {
    STOKER_TRY(enter(folder));
    const Status done = leads_back() ? (scanned_.notes.looping.push_back(folder), Status()) : walk_entered(folder, out);
    above_.pop_back();
    return done;
  }

  Status walk_entered(const std::string& folder, Folders& out) {
    auto listing = list(folder + "/");
    if (!listing) return listing.error();
    std::vector<std::string> images;
    for (std::string& file : listing->files) {
      if (has_image_extension(file)) {
        images.push_back(std::move(file));
      } else {
        count_other(folder + "/" + file);
      }
    }
    if (!images.empty()) out.emplace_back(folder, std::move(images));
    for (const std::string& inner : listing->folders) STOKER_TRY(walk(folder + "/" + inner, out));
    return {};
  }

  const std::filesystem::path root_;
  ScannedFolder scanned_;
  std::vector<FolderIdentity> above_;  // from the root to the folder at hand
};

Error no_classes(const std::filesystem::path& root, const ScannedFolder& scanned) {
  const std::size_t images = scanned.loose.size();
  const std::size_t hidden = scanned.notes.hidden.size();
  std::string found = images > 0 ? fmt::format("{} images but no class folder", images) : "no class folder";
  if (hidden > 0) found += fmt::format(" ({} hidden ones passed over)", hidden);
  return {ErrorCode::kBadInput, fmt::format("{} holds {}", root.string(), found),
          fmt::format("put each class's images into a folder of its own: {}/<class>/<image>.jpg", root.string())};
}

Status check_root(const std::filesystem::path& root) {
  struct stat info {};
  if (::stat(root.c_str(), &info) != 0) {
    Error error = errno_error(errno, "cannot open the folder " + root.string());
    error.hint = "check the path; the folder must hold one folder per class";
    return error;
  }
  if (!S_ISDIR(info.st_mode))
    return Error{ErrorCode::kBadInput, root.string() + " is a file, not a folder",
                 "unpack an archive first: `stoker stage " + root.string() + " data/`"};
  return {};
}

Status check_found(const std::filesystem::path& root, const ScannedFolder& found, FolderOptions options) {
  if (found.names.size() == 0)
    return Error{
        ErrorCode::kBadInput,
        fmt::format("{} has {} class folders but no image in them ({} other files{}{})", root.string(),
                    found.classes.size(), found.notes.other_files, found.notes.other_names.empty() ? "" : ", as ",
                    found.notes.other_names.empty() ? "" : found.notes.other_names.front()),
        fmt::format("images are files named {}", fmt::join(kExtensions, ", "))};
  if (!found.notes.empty.empty() && !options.allow_empty_classes)
    return Error{
        ErrorCode::kBadInput,
        fmt::format("no image in {} of the {} classes of {}: {}", found.notes.empty.size(), found.classes.size(),
                    root.string(), fmt::join(found.notes.empty, ", ")),
        fmt::format("remove the empty folders, or fill them with files named {}", fmt::join(kExtensions, ", "))};
  return {};
}

}  // namespace

Result<FolderListing> list_folder(const std::filesystem::path& folder) {
  const std::string path = folder.string();
  const std::unique_ptr<DIR, int (*)(DIR*)> in(::opendir(path.c_str()), ::closedir);
  if (!in) return errno_error(errno, "cannot read the folder " + path);
  FolderListing listing;
  errno = 0;
  while (const dirent* entry = ::readdir(in.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (name.front() == '.') {
      listing.hidden.push_back(name);
    } else {
      (is_folder(in.get(), *entry) ? listing.folders : listing.files).push_back(name);
    }
    errno = 0;  // is_folder() may have met a link that leads nowhere
  }
  if (errno != 0) return errno_error(errno, "cannot read the folder " + path);
  for (auto* names : {&listing.folders, &listing.files, &listing.hidden}) std::sort(names->begin(), names->end());
  return listing;
}

bool has_image_extension(std::string_view file_name) {
  const std::size_t dot = file_name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string extension(file_name.substr(dot));
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

Result<ScannedFolder> scan_tree(const std::filesystem::path& root) {
  STOKER_TRY(check_root(root));
  Scan scan(root);
  STOKER_TRY(scan.enter_root());
  auto top = scan.list("");
  if (!top) return top.error();
  for (const std::string& file : top->files) {
    if (has_image_extension(file)) scan.scanned().loose.push_back(file);
    scan.count_other(file);
  }
  for (const std::string& name : top->folders) STOKER_TRY(scan.add_class(name));
  return std::move(scan.scanned());
}

Result<ScannedFolder> scan_class_folder(const std::filesystem::path& root, FolderOptions options) {
  auto scanned = scan_tree(root);
  if (!scanned) return scanned;
  if (scanned->classes.empty()) return no_classes(root, *scanned);
  STOKER_TRY(check_found(root, *scanned, options));
  return scanned;
}

}  // namespace stoker::feed
