#include "stoker/machine/process.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "machine/proc.h"

namespace stoker::machine {
namespace {

std::filesystem::path process_folder(const Root& root, int pid) { return root / "/proc" / std::to_string(pid); }

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n\t"), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Of /proc/<pid>/stat, from proc(5)'s field 3 (the state) on. The name before it may hold blanks and brackets.
std::vector<std::string_view> fields_behind_name(std::string_view stat) {
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string_view::npos ? std::vector<std::string_view>() : words(stat.substr(name_end + 1));
}

std::optional<int> parse_pid(std::string_view text) {
  const auto value = parse_number(text);
  if (!value || *value > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) return std::nullopt;
  return static_cast<int>(*value);
}

// Numeric entries of a /proc folder: pids or tids.
std::vector<int> numeric_entries(const std::filesystem::path& folder) {
  std::vector<int> out;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (const auto value = parse_pid(it->path().filename().native())) out.push_back(*value);
  }
  return out;
}

// Nothing where the kernel does not list children (CONFIG_PROC_CHILDREN).
std::optional<std::vector<int>> listed_children(int pid, const Root& root) {
  std::vector<int> out;
  bool listed = false;
  const std::filesystem::path tasks = process_folder(root, pid) / "task";
  for (const int tid : numeric_entries(tasks)) {
    const auto text = read_text(tasks / std::to_string(tid) / "children");
    if (!text) continue;
    listed = true;
    for (const std::string_view word : words(*text)) {
      if (const auto child = parse_pid(word)) out.push_back(*child);
    }
  }
  if (!listed) return std::nullopt;
  return out;
}

void add_new(int pid, std::vector<int>& pids) {
  if (std::find(pids.begin(), pids.end(), pid) == pids.end()) pids.push_back(pid);
}

std::vector<int> scanned_descendants(int pid, const Root& root) {
  std::vector<std::pair<int, int>> parents;  // pid, parent
  for (const int other : numeric_entries(root / "/proc")) {
    if (const auto stat = process_stat(other, root)) parents.emplace_back(other, (*stat).parent);
  }
  std::vector<int> out = {pid};
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (const auto& [child, parent] : parents) {
      if (parent == out[i]) add_new(child, out);
    }
  }
  out.erase(out.begin());
  return out;
}

// The number in the line that starts with `key`; a unit may follow it.
std::optional<std::uint64_t> number_of(std::string_view text, std::string_view key) {
  const auto value = value_of(text, key);
  return value ? parse_number(value->substr(0, value->find(' '))) : std::nullopt;
}

}  // namespace

Signal<ProcessStat> process_stat(int pid, const Root& root) {
  const auto text = read_text(process_folder(root, pid) / "stat");
  if (!text) return Signal<ProcessStat>::unavailable("no process " + std::to_string(pid));
  const auto fields = fields_behind_name(*text);
  if (fields.size() < 22)
    return Signal<ProcessStat>::unavailable("/proc/" + std::to_string(pid) + "/stat is not as proc(5) says");
  const auto number = [&fields](std::size_t index) { return parse_number(fields[index]).value_or(0); };
  ProcessStat stat;
  stat.state = fields[0][0];
  stat.parent = parse_pid(fields[1]).value_or(0);
  stat.cpu_ticks = number(11) + number(12);
  stat.reaped_ticks = number(13) + number(14);
  stat.start_ticks = number(19);
  stat.rss_bytes = number(21) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return stat;
}

Signal<ProcessIo> process_io(int pid, const Root& root) {
  const auto text = read_text(process_folder(root, pid) / "io");
  const auto read = text ? number_of(*text, "read_bytes:") : std::nullopt;
  const auto written = text ? number_of(*text, "write_bytes:") : std::nullopt;
  if (!read || !written) return Signal<ProcessIo>::unavailable("/proc/<pid>/io cannot be read here");
  return ProcessIo{*read, *written};
}

Signal<std::uint64_t> process_pss_bytes(int pid, const Root& root) {
  const auto text = read_text(process_folder(root, pid) / "smaps_rollup");
  const auto kib = text ? number_of(*text, "Pss:") : std::nullopt;
  if (!kib) return Signal<std::uint64_t>::unavailable("/proc/<pid>/smaps_rollup cannot be read here");
  return *kib * 1024;
}

std::vector<int> descendants(int pid, const Root& root) {
  std::vector<int> out = {pid};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto children = listed_children(out[i], root);
    if (!children && i == 0) return scanned_descendants(pid, root);
    if (!children) continue;
    for (const int child : *children) add_new(child, out);
  }
  out.erase(out.begin());
  return out;
}

bool process_alive(int pid, std::uint64_t start_ticks, const Root& root) {
  if (pid <= 0) return false;
  const auto stat = process_stat(pid, root).value;
  if (!stat || stat->state == 'Z' || stat->state == 'X') return false;
  return start_ticks == 0 || stat->start_ticks == start_ticks;
}

}  // namespace stoker::machine
