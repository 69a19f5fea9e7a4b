// Small figures that make an explanation concrete; a sentence without its figure is left out.
#include <charconv>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "watch/explain/names.h"
#include "watch/explain/pattern.h"

namespace stoker::watch {
namespace {

std::uint64_t number(std::string_view digits) {
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

void read_ram(std::string_view log, Names& names) {
  static const Pattern killed("Killed process (\\d+) \\(([^)\\n]*)\\)[^\\n]*anon-rss:(\\d+)kB");
  static const Pattern worker("DataLoader worker \\(pid(?:\\(s\\))? (\\d+)");
  static const Pattern array("Unable to allocate ([\\d.]+ [KMGT]iB) for an array");
  static const Pattern allocator("tried to allocate (\\d+) bytes");
  if (const auto match = worker.find(log))
    names.set("ram_killed", fmt::format(": DataLoader worker {}", match->groups[1]));
  if (const auto match = killed.find_last(log)) {
    names.set("ram_numbers",
              fmt::format("By the kernel's own log process {} ({}) held {} when it was ended.", match->groups[1],
                          printable(match->groups[2]), format_size(number(match->groups[3]) * 1024)));
  } else if (const auto array_match = array.find(log)) {
    names.set("ram_numbers", fmt::format("{} were asked for at once.", array_match->groups[1]));
  } else if (const auto bytes = allocator.find(log)) {
    names.set("ram_numbers", fmt::format("{} were asked for at once.", format_size(number(bytes->groups[1]))));
  }
}

}  // namespace

void read_numbers(std::string_view log, Names& names) {
  read_ram(log, names);
  static const Pattern driver("found version (\\d{4,5})\\)");
  if (const auto match = driver.find(log)) {
    const auto version = number(match->groups[1]);
    names.set("driver_cuda_name", fmt::format(" (it reaches CUDA {}.{})", version / 1000, version % 1000 / 10));
  }
  static const Pattern workers(
      "create (\\d+) worker processes in total\\. Our suggested max number of worker in current system is (\\d+)");
  if (const auto match = workers.find(log)) {
    names.set(
        "too_many_workers",
        fmt::format(
            "{} workers on {} CPUs is advice about speed, not the cause of an error: set num_workers to {} or fewer.",
            match->groups[1], match->groups[2], match->groups[2]));
  }
  static const Pattern download("(?m)100%[^\\n]*?\\b([\\d.]+ ?[kK]?)B?/[\\d.]+ ?[kK]?B?\\b");
  if (const auto match = download.find(log)) {
    names.set("small_download",
              fmt::format("Only {}B were downloaded, which is a page's size and not a data set's.", match->groups[1]));
  }
  static const Pattern finished("(?i)\\[?rank ?(\\d+)\\]?[^\\n]{0,60}(?:finished|done|completed|exiting)");
  if (const auto match = finished.find(log)) {
    names.set("rank_finished",
              fmt::format("Rank {} reports that it is through, while the others still wait.", match->groups[1]));
  }
  static const Pattern assertion("[Aa]ssertion [`'][^\\n]*failed");
  if (assertion.find(log)) {
    names.set("cublas_after_assert",
              "An assertion of a kernel stands in this log before it: here it is the index or label, not memory.");
  }
}

}  // namespace stoker::watch
