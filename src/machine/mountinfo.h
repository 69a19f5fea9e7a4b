// One line of /proc/self/mountinfo, whole. Private to the room; machine.h's Mount is what others need of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/machine/machine.h"

namespace stoker::machine {

struct MountinfoLine {
  std::string root;     // the part of the file system that is mounted: "/docker/4f…" for a container's cgroup
  std::string point;    // octal escapes undone
  std::string options;  // of this mount: "ro,relatime"
  std::string filesystem;
  std::string source;
  std::string super_options;  // of the file system: "rw,memory", "rw,size=65536k"
};

// Nothing for a line that is not in the format of proc(5).
std::optional<MountinfoLine> parse_mountinfo_line(std::string_view line);
std::vector<MountinfoLine> read_mountinfo(const Root& root);

// "a\040b" → "a b".
std::string undo_octal(std::string_view text);
// True when `word` is one of the comma-separated `options`.
bool has_option(std::string_view options, std::string_view word);

MountKind kind_of(std::string_view filesystem, std::string_view source);

}  // namespace stoker::machine
