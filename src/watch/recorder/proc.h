// /proc/<pid>, as far as the sampler reads it. Everything takes the root, so that tests feed recorded trees.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stoker/machine/machine.h"

namespace stoker::watch {

using machine::Root;

struct ProcessStat {
  std::uint64_t cpu_ticks = 0;     // user and system, of all its threads
  std::uint64_t reaped_ticks = 0;  // the same of its children that have ended and been waited for, and of theirs
  std::uint64_t start_ticks = 0;   // since boot; tells a process from a later one of the same pid
  std::uint64_t rss_bytes = 0;
  int parent = 0;
  char state = '?';
};

struct ProcessIo {
  std::uint64_t read_bytes = 0;  // from storage; the page cache is not in it
  std::uint64_t write_bytes = 0;
};

// A whole small file of /proc or /sys, or nothing.
std::optional<std::string> read_small(const std::filesystem::path& path);
// The number after `key` (followed by blanks or a colon) at the start of a line.
std::optional<std::uint64_t> keyed_number(const std::string& text, std::string_view key);

std::optional<ProcessStat> process_stat(const Root& root, int pid);
std::optional<ProcessIo> process_io(const Root& root, int pid);
// Proportional set size: pages shared by n processes count 1/n. Costly (the kernel walks the page tables).
std::optional<std::uint64_t> process_pss(const Root& root, int pid);

// All descendants of `pid`, nearest first; without `pid` itself.
std::vector<int> descendants(const Root& root, int pid);

// True when `pid` runs (a zombie does not) and, unless `start_ticks` is 0, is the process that started then.
bool process_alive(int pid, std::uint64_t start_ticks, const Root& root = {});

}  // namespace stoker::watch
