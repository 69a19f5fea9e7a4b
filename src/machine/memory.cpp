#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "machine/cgroups.h"
#include "machine/proc.h"
#include "stoker/machine/machine.h"

namespace stoker::machine {
namespace {

constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;  // v1 writes 2⁶³ − 4096 for none

struct Level {
  std::uint64_t limit = 0;
  Signal<std::uint64_t> used;
  std::string name;
};

std::optional<std::uint64_t> number_in(const std::filesystem::path& file) {
  const auto text = read_text(file);
  return text ? parse_number(*text) : std::nullopt;
}

std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

// Usage without the page cache, which gives way when memory is asked for.
Signal<std::uint64_t> used_of(const CgroupLevel& level) {
  const auto usage = number_in(level.directory / (level.v2 ? "memory.current" : "memory.usage_in_bytes"));
  const auto stat = read_text(level.directory / "memory.stat");
  if (!usage || !stat) return Signal<std::uint64_t>::unavailable("cannot read the usage in " + level.shown);
  const auto field = [&](const char* v2, const char* v1) {
    const auto text = value_of(*stat, level.v2 ? v2 : v1);
    return (text ? parse_number(*text) : std::nullopt).value_or(0);
  };
  const auto cache = field("inactive_file ", "total_inactive_file ") + field("active_file ", "total_active_file ");
  return minus(*usage, cache);
}

std::optional<Level> limit_of(const CgroupLevel& level) {
  std::optional<std::uint64_t> limit;
  const auto consider = [&](const char* file) {
    const auto value = number_in(level.directory / file);  // "max" is no number
    if (value && *value < kNoLimit && (!limit || *value < *limit)) limit = value;
  };
  if (level.v2) {
    consider("memory.max");
    consider("memory.high");  // beyond it every allocation is slowed down to a crawl
  } else {
    consider("memory.limit_in_bytes");
  }
  if (!limit) return std::nullopt;
  return Level{*limit, used_of(level), fmt::format("cgroup {} {}", level.v2 ? "v2" : "v1", level.shown)};
}

std::optional<Level> ram_of(const Root& root) {
  const auto meminfo = read_text(root / "/proc/meminfo");
  if (!meminfo) return std::nullopt;
  const auto bytes = [&](const char* key) -> std::optional<std::uint64_t> {
    const auto text = value_of(*meminfo, key);
    const auto kib = text ? parse_number(text->substr(0, text->find(' '))) : std::nullopt;
    return kib ? std::optional(*kib * 1024) : std::nullopt;
  };
  const auto total = bytes("MemTotal:");
  if (!total) return std::nullopt;
  Level ram{*total, Signal<std::uint64_t>::unavailable("/proc/meminfo has no MemAvailable"), "RAM"};
  if (const auto available = bytes("MemAvailable:")) ram.used = minus(*total, *available);
  return ram;
}

}  // namespace

MemoryFacts memory_facts(const Root& root) {
  std::vector<Level> levels;
  MemoryFacts facts;
  facts.ram = Signal<std::uint64_t>::unavailable("cannot read /proc/meminfo");
  if (auto ram = ram_of(root)) {
    facts.ram = ram->limit;
    levels.push_back(std::move(*ram));
  }
  for (const CgroupLevel& group : cgroup_levels(root, "memory")) {
    if (auto level = limit_of(group)) levels.push_back(std::move(*level));
  }
  const auto smallest =
      std::min_element(levels.begin(), levels.end(), [](const Level& a, const Level& b) { return a.limit < b.limit; });
  if (smallest == levels.end()) {
    facts.limit = facts.used = facts.left = Signal<std::uint64_t>::unavailable("neither RAM nor a cgroup can be read");
    return facts;
  }
  facts.limit = smallest->limit;
  facts.used = smallest->used;
  facts.bound_by = smallest->name;
  facts.left = Signal<std::uint64_t>::unavailable(smallest->used.why);
  for (const Level& level : levels) {
    if (!level.used) continue;
    const std::uint64_t left = minus(level.limit, *level.used);
    if (!facts.left || left < *facts.left) facts.left = left;
  }
  return facts;
}

}  // namespace stoker::machine
