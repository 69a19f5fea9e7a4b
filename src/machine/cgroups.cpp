#include "machine/cgroups.h"

#include <optional>

#include "machine/mountinfo.h"
#include "machine/proc.h"
#include "stoker/base/text.h"

namespace stoker::machine {
namespace {

// The path of this process in one hierarchy, from /proc/self/cgroup; v2 has no controller names ("0::/a/b").
std::optional<std::string> path_in_hierarchy(std::string_view self, std::string_view controller, bool v2) {
  for (const std::string_view line : split_lines(self)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    if (v2 ? names.empty() : has_option(names, controller)) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

// The group's place under the mount point. The mount may show only a part of the tree (`mount_root`), and the process
// may stand outside that part, as in a container whose group is named as the host sees it: then the mount point.
std::filesystem::path below_mount(const std::string& group, const std::string& mount_root) {
  const std::filesystem::path relative =
      std::filesystem::path(group).lexically_normal().lexically_relative(mount_root.empty() ? "/" : mount_root);
  return relative.empty() || *relative.begin() == ".." ? std::filesystem::path() : relative;
}

void add_levels(const Root& root, const MountinfoLine& mount, const std::string& group, bool v2,
                std::vector<CgroupLevel>& levels) {
  std::filesystem::path below = below_mount(group, mount.root);
  if (below == ".") below.clear();
  for (;;) {
    std::filesystem::path shown = mount.point;
    if (!below.empty()) shown /= below;
    std::error_code error;
    if (std::filesystem::is_directory(root / shown, error)) levels.push_back({root / shown, shown.native(), v2});
    if (below.empty()) return;
    below = below.parent_path();
  }
}

}  // namespace

std::vector<CgroupLevel> cgroup_levels(const Root& root, std::string_view controller) {
  std::vector<CgroupLevel> levels;
  const auto self = read_text(root / "/proc/self/cgroup");
  for (const MountinfoLine& mount : read_mountinfo(root)) {
    const bool v2 = mount.filesystem == "cgroup2";
    if (!v2 && (mount.filesystem != "cgroup" || !has_option(mount.super_options, controller))) continue;
    const auto group = self ? path_in_hierarchy(*self, controller, v2) : std::nullopt;
    add_levels(root, mount, group.value_or("/"), v2, levels);
  }
  return levels;
}

}  // namespace stoker::machine
