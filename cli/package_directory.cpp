#include "package_directory.h"

#include <cstdlib>
#include <vector>

#include "stoker/base/process.h"

namespace stoker::cli {
namespace {

bool holds_package(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / "stoker" / "_inject" / "sitecustomize.py", ignored);
}

// <prefix>/lib/python3*/{site,dist}-packages, as virtual environments and distributions lay them out.
std::vector<std::filesystem::path> package_folders(const std::filesystem::path& library) {
  std::vector<std::filesystem::path> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(library, ignored)) {
    if (!entry.path().filename().native().starts_with("python3")) continue;
    out.push_back(entry.path() / "site-packages");
    out.push_back(entry.path() / "dist-packages");
  }
  return out;
}

}  // namespace

std::filesystem::path package_directory() {
  const char* told = std::getenv("STOKER_PYTHON_DIR");
  if (told != nullptr && *told != '\0') return told;
  const std::filesystem::path here = self_directory();
  std::vector<std::filesystem::path> candidates = {here / "../../../python", here / "../.."};
  for (auto& folder : package_folders(here / "../lib")) candidates.push_back(std::move(folder));
  for (const auto& folder : candidates) {
    if (holds_package(folder)) return std::filesystem::weakly_canonical(folder);
  }
  return {};
}

}  // namespace stoker::cli
