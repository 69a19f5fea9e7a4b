#include "machine/proc.h"

#include <charconv>

#include "stoker/base/files.h"
#include "stoker/base/text.h"

namespace stoker::machine {
namespace {

constexpr std::size_t kMaxFile = std::size_t{8} << 20;  // /proc/self/mountinfo of a busy container host
constexpr int kMaxCpu = 1 << 16;

}  // namespace

std::optional<std::string> read_text(const std::filesystem::path& path) {
  auto text = FileSystem::real().read(path, kMaxFile);
  if (!text) return std::nullopt;
  return std::string(trim(*text));
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  text = trim(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::set<int> parse_cpu_list(std::string_view text) {
  std::set<int> cpus;
  text = trim(text);
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t dash = part.find('-');
    const auto first = parse_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(part.substr(dash + 1));
    if (!first || !last || *last >= kMaxCpu || *first > *last) return {};
    for (auto cpu = *first; cpu <= *last; ++cpu) cpus.insert(static_cast<int>(cpu));
  }
  return cpus;
}

std::optional<std::string_view> value_of(std::string_view text, std::string_view key) {
  for (const std::string_view line : split_lines(text)) {
    if (line.substr(0, key.size()) == key) return trim(line.substr(key.size()));
  }
  return std::nullopt;
}

}  // namespace stoker::machine
