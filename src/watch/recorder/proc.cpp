#include "watch/recorder/proc.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "stoker/base/files.h"

namespace stoker::watch {
namespace {

std::filesystem::path process_folder(const Root& root, int pid) { return root.path / "proc" / std::to_string(pid); }

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n\t"), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::uint64_t unsigned_number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Numeric entries of a /proc folder: pids or tids.
std::vector<int> numeric_entries(const std::filesystem::path& folder) {
  std::vector<int> out;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (const auto value = number(it->path().filename().native())) out.push_back(*value);
  }
  return out;
}

// Nothing where the kernel does not list children (CONFIG_PROC_CHILDREN).
std::optional<std::vector<int>> listed_children(const Root& root, int pid) {
  std::vector<int> out;
  bool listed = false;
  for (const int tid : numeric_entries(process_folder(root, pid) / "task")) {
    const auto text = read_small(process_folder(root, pid) / "task" / std::to_string(tid) / "children");
    if (!text) continue;
    listed = true;
    for (const std::string_view word : words(*text)) {
      if (const auto child = number(word)) out.push_back(*child);
    }
  }
  if (!listed) return std::nullopt;
  return out;
}

std::vector<int> scanned_descendants(const Root& root, int pid) {
  std::vector<std::pair<int, int>> parents;  // pid, parent
  for (const int other : numeric_entries(root.path / "proc")) {
    if (const auto stat = process_stat(root, other)) parents.emplace_back(other, stat->parent);
  }
  std::vector<int> out = {pid};
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (const auto& [child, parent] : parents) {
      if (parent == out[i] && std::find(out.begin(), out.end(), child) == out.end()) out.push_back(child);
    }
  }
  out.erase(out.begin());
  return out;
}

}  // namespace

std::optional<std::string> read_small(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text(1 << 14, '\0');
  std::size_t used = 0;
  for (ssize_t got = 1; got > 0 && used < text.size();) {
    got = ::read(fd, text.data() + used, text.size() - used);
    if (got < 0) {
      ::close(fd);
      return std::nullopt;
    }
    used += static_cast<std::size_t>(got);
  }
  ::close(fd);
  text.resize(used);
  return text;
}

std::optional<std::uint64_t> keyed_number(const std::string& text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    const std::size_t digits = line.find_first_not_of(": \t");
    if (digits == 0 || digits == std::string_view::npos) continue;
    return unsigned_number(line.substr(digits));
  }
  return std::nullopt;
}

std::optional<ProcessStat> process_stat(const Root& root, int pid) {
  const auto text = read_small(process_folder(root, pid) / "stat");
  if (!text) return std::nullopt;
  const std::size_t name_end = text->rfind(')');  // the name may hold blanks and brackets
  if (name_end == std::string::npos) return std::nullopt;
  const auto fields = words(std::string_view(*text).substr(name_end + 1));  // fields[0] is field 3, the state
  if (fields.size() < 22) return std::nullopt;
  ProcessStat stat;
  stat.state = fields[0][0];
  stat.parent = number(fields[1]).value_or(0);
  stat.cpu_ticks = unsigned_number(fields[11]) + unsigned_number(fields[12]);
  stat.reaped_ticks = unsigned_number(fields[13]) + unsigned_number(fields[14]);
  stat.start_ticks = unsigned_number(fields[19]);
  stat.rss_bytes = unsigned_number(fields[21]) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return stat;
}

std::optional<ProcessIo> process_io(const Root& root, int pid) {
  const auto text = read_small(process_folder(root, pid) / "io");
  if (!text) return std::nullopt;
  const auto read = keyed_number(*text, "read_bytes");
  const auto written = keyed_number(*text, "write_bytes");
  if (!read || !written) return std::nullopt;
  return ProcessIo{*read, *written};
}

std::optional<std::uint64_t> process_pss(const Root& root, int pid) {
  const auto text = read_small(process_folder(root, pid) / "smaps_rollup");
  if (!text) return std::nullopt;
  const auto kib = keyed_number(*text, "Pss");
  if (!kib) return std::nullopt;
  return *kib * 1024;
}

std::vector<int> descendants(const Root& root, int pid) {
  std::vector<int> out = {pid};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto children = listed_children(root, out[i]);
    if (!children && i == 0) return scanned_descendants(root, pid);
    if (!children) continue;
    for (const int child : *children) {
      if (std::find(out.begin(), out.end(), child) == out.end()) out.push_back(child);
    }
  }
  out.erase(out.begin());
  return out;
}

bool process_alive(int pid, std::uint64_t start_ticks, const Root& root) {
  if (pid <= 0) return false;
  const auto stat = process_stat(root, pid);
  if (!stat || stat->state == 'Z' || stat->state == 'X') return false;
  return start_ticks == 0 || stat->start_ticks == start_ticks;
}

}  // namespace stoker::watch
