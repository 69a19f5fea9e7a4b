#include "machine/proc.h"
#include "stoker/base/text.h"
#include "stoker/machine/machine.h"

namespace stoker::machine {
namespace {

// "Max open files            1024                 4096                 files": the soft limit is the first column.
Signal<std::uint64_t> soft_limit(std::string_view limits, std::string_view title) {
  const auto line = value_of(limits, title);
  if (!line) return Signal<std::uint64_t>::unavailable("not in /proc/self/limits");
  const std::string_view soft = line->substr(0, line->find(' '));
  if (soft == "unlimited") return Signal<std::uint64_t>::unavailable("unlimited");
  const auto value = parse_number(soft);
  return value ? Signal<std::uint64_t>(*value) : Signal<std::uint64_t>::unavailable("not a number");
}

}  // namespace

LimitFacts limit_facts(const Root& root) {
  const std::string limits = read_text(root / "/proc/self/limits").value_or("");
  LimitFacts facts;
  facts.open_files = soft_limit(limits, "Max open files");
  facts.processes = soft_limit(limits, "Max processes");
  facts.file_size_bytes = soft_limit(limits, "Max file size");
  facts.address_space_bytes = soft_limit(limits, "Max address space");
  facts.locked_memory_bytes = soft_limit(limits, "Max locked memory");
  return facts;
}

}  // namespace stoker::machine
