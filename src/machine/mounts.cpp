#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <system_error>

#include <fmt/format.h>

#include "machine/mountinfo.h"
#include "machine/proc.h"
#include "stoker/base/text.h"
#include "stoker/machine/machine.h"

namespace stoker::machine {
namespace {

constexpr std::array kNetwork = {"nfs",    "nfs4", "cifs", "smb3",      "smbfs", "lustre", "ceph",  "9p",
                                 "beegfs", "gpfs", "afs",  "glusterfs", "ocfs2", "panfs",  "wekafs"};
constexpr std::array kLocal = {"ext2",  "ext3", "ext4",  "xfs",     "btrfs",    "zfs",   "f2fs",     "vfat",
                               "exfat", "ntfs", "ntfs3", "iso9660", "squashfs", "erofs", "bcachefs", "fuseblk"};
// Block devices mounted through FUSE behave as local disks do.
constexpr std::array kMemory = {"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"};

template <std::size_t n>
bool in(const std::array<const char*, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end > 0) fields.push_back(line.substr(0, end));
    line.remove_prefix(std::min(line.size(), end + 1));
  }
  return fields;
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

// True when `path` is `point` or lies in it.
bool holds(const std::string& point, const std::string& path) {
  if (point == "/") return true;
  return path.compare(0, point.size(), point) == 0 && (path.size() == point.size() || path[point.size()] == '/');
}

// `path` with links resolved as far as it exists.
std::filesystem::path resolved(const std::filesystem::path& path, const Root& root) {
  if (!root.is_this_machine()) return path.lexically_normal();
  std::error_code error;
  auto real = std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
  return error ? std::filesystem::absolute(path).lexically_normal() : real;
}

}  // namespace

std::string undo_octal(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
                        is_octal(text[i + 3]);
    if (!escape) {
      out += text[i];
      continue;
    }
    out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return out;
}

bool has_option(std::string_view options, std::string_view word) {
  while (!options.empty()) {
    const std::size_t end = std::min(options.find(','), options.size());
    if (options.substr(0, end) == word) return true;
    options.remove_prefix(std::min(options.size(), end + 1));
  }
  return false;
}

MountKind kind_of(std::string_view filesystem, std::string_view source) {
  if (in(kNetwork, filesystem)) {
    // gVisor serves a container's own root through 9p; nothing there is remote.
    return filesystem == "9p" && (source == "none" || source.empty()) ? MountKind::kOther : MountKind::kNetwork;
  }
  if (in(kLocal, filesystem)) return MountKind::kLocal;
  if (in(kMemory, filesystem)) return MountKind::kTmpfs;
  if (filesystem == "overlay" || filesystem == "aufs" || filesystem == "fuse.fuse-overlayfs") {
    return MountKind::kOverlay;
  }
  if (filesystem.substr(0, 4) == "fuse") return MountKind::kFuse;
  if (filesystem == "virtiofs" || filesystem == "vboxsf" || filesystem == "drvfs") return MountKind::kNetwork;
  return MountKind::kOther;
}

std::optional<MountinfoLine> parse_mountinfo_line(std::string_view line) {
  const auto fields = fields_of(line);
  const auto dash = std::find(fields.begin(), fields.end(), std::string_view("-"));
  if (dash - fields.begin() < 6 || fields.end() - dash < 3) return std::nullopt;
  MountinfoLine mount;
  mount.root = undo_octal(fields[3]);
  mount.point = undo_octal(fields[4]);
  mount.options = fields[5];
  mount.filesystem = undo_octal(dash[1]);
  mount.source = undo_octal(dash[2]);
  if (fields.end() - dash > 3) mount.super_options = dash[3];
  return mount;
}

std::vector<MountinfoLine> read_mountinfo(const Root& root) {
  std::vector<MountinfoLine> lines;
  const auto text = read_text(root / "/proc/self/mountinfo");
  if (!text) return lines;
  for (const std::string_view line : split_lines(*text)) {
    if (auto mount = parse_mountinfo_line(line)) lines.push_back(std::move(*mount));
  }
  return lines;
}

const char* name(MountKind kind) {
  switch (kind) {
    case MountKind::kLocal:
      return "local";
    case MountKind::kNetwork:
      return "network";
    case MountKind::kFuse:
      return "FUSE";
    case MountKind::kTmpfs:
      return "tmpfs";
    case MountKind::kOverlay:
      return "overlay";
    case MountKind::kOther:
      break;
  }
  return "other";
}

bool is_remote(MountKind kind) { return kind == MountKind::kNetwork || kind == MountKind::kFuse; }

Result<std::vector<Mount>> mounts(const Root& root) {
  std::vector<Mount> found;
  for (const MountinfoLine& line : read_mountinfo(root)) {
    Mount mount;
    mount.point = line.point;
    mount.filesystem = line.filesystem;
    mount.source = line.source;
    mount.kind = kind_of(line.filesystem, line.source);
    mount.read_only = has_option(line.options, "ro") || has_option(line.super_options, "ro");
    found.push_back(std::move(mount));
  }
  if (found.empty()) return Error{ErrorCode::kIo, "cannot read the mounts from /proc/self/mountinfo"};
  return found;
}

Result<Mount> mount_of(const std::filesystem::path& path, const Root& root) {
  auto all = mounts(root);
  if (!all) return all.error();
  const std::string target = resolved(path, root).native();
  const Mount* best = nullptr;
  for (const Mount& mount : *all) {
    if (!holds(mount.point.native(), target)) continue;
    if (best == nullptr || mount.point.native().size() >= best->point.native().size()) best = &mount;
  }
  if (best == nullptr) return Error{ErrorCode::kNotFound, fmt::format("no mount holds {}", printable(target))};
  return *best;
}

ShmFacts shm_facts(const Root& root) {
  ShmFacts facts;
  const std::string why = "no tmpfs at /dev/shm";
  facts.size = Signal<std::uint64_t>::unavailable(why);
  facts.free = Signal<std::uint64_t>::unavailable(root.is_this_machine() ? why : "a recorded machine");
  struct ::statvfs info {};
  if (root.is_this_machine()) {
    const auto mount = mount_of("/dev/shm", root);
    if (mount.ok() && mount->kind == MountKind::kTmpfs && ::statvfs("/dev/shm", &info) == 0) {
      facts.size = static_cast<std::uint64_t>(info.f_blocks) * info.f_frsize;
      facts.free = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
    }
    return facts;
  }
  for (const MountinfoLine& line : read_mountinfo(root)) {
    if (line.point != "/dev/shm") continue;
    const std::size_t at = line.super_options.find("size=");
    const std::string_view text = std::string_view(line.super_options).substr(std::min(at, line.super_options.size()));
    const auto kib = parse_number(text.substr(std::min<std::size_t>(5, text.size()), text.find('k') - 5));
    if (kib) facts.size = *kib * 1024;
  }
  return facts;
}

}  // namespace stoker::machine
