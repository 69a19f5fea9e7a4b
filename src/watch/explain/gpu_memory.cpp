// The numbers of an out-of-memory message, in the forms of torch 1 and 2, and what they add up to.
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "watch/explain/names.h"
#include "watch/explain/pattern.h"

namespace stoker::watch {
namespace {

// A size as the message wrote it, and in GiB.
struct Size {
  std::string text;
  double gib = 0;
};

#define STOKER_SIZE "([\\d.]+ ?(?:[KMGT]i?B|bytes))"

std::optional<Size> parse(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit = trim(std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)));
  constexpr double kKibi = 1024.0;
  double gib = value / kKibi / kKibi / kKibi;
  for (const char letter : std::string_view("KMGT")) {
    gib *= kKibi;
    if (!unit.empty() && unit[0] == letter) return Size{std::string(text), gib};
  }
  return Size{std::string(text), value / kKibi / kKibi / kKibi};
}

std::optional<Size> size_after(const char* expression, std::string_view text) {
  const auto match = Pattern(expression).find(text);
  return match ? parse(match->groups.back()) : std::nullopt;
}

std::string gib(double value) {
  return value < 1 ? fmt::format("{:.0f} MiB", value * 1024) : fmt::format("{:.2f} GiB", value);
}

struct Message {
  std::optional<Size> request, total, free, allocated, unused, own;
  double others = 0;
  std::string other_processes;
};

void read_others(std::string_view text, Message& message) {
  const Pattern process("Process (\\d+) has " STOKER_SIZE " memory in use");
  for (auto match = process.find(text); match; match = process.find(text, match->end)) {
    const auto size = parse(match->groups[2]);
    if (!size) continue;
    message.others += size->gib;
    message.other_processes +=
        fmt::format("{}process {} holds {}", message.other_processes.empty() ? "" : ", ", match->groups[1], size->text);
  }
  if (message.others == 0 && message.total && message.free && message.own) {
    message.others = message.total->gib - message.free->gib - message.own->gib;
  }
}

Message read_message(std::string_view text) {
  Message message;
  message.request = size_after("(?i)tried to allocate " STOKER_SIZE, text);
  message.total = size_after("(?i)total capac\\w* of " STOKER_SIZE, text);
  if (!message.total) message.total = size_after(STOKER_SIZE " total capacity", text);
  message.free = size_after("of which " STOKER_SIZE " is free", text);
  if (!message.free) message.free = size_after(STOKER_SIZE " free;", text);
  message.allocated = size_after(STOKER_SIZE " (?:is allocated by PyTorch|already allocated)", text);
  if (!message.allocated) message.allocated = size_after("(?i)allocated memory " STOKER_SIZE " is allocated", text);
  message.own = size_after("this process has " STOKER_SIZE " memory in use", text);
  message.unused = size_after("and " STOKER_SIZE " is reserved by PyTorch but unallocated", text);
  const auto reserved = size_after(STOKER_SIZE " (?:reserved in total by PyTorch|cached)", text);
  if (!message.unused && reserved && message.allocated) {
    const double unused = std::max(0.0, reserved->gib - message.allocated->gib);
    message.unused = Size{gib(unused), unused};
  }
  read_others(text, message);
  return message;
}

void say_numbers(const Message& m, Names& names) {
  std::string text = m.request->text + " were asked for";
  if (m.free && m.total) text += fmt::format("; {} of the card's {} were free", m.free->text, m.total->text);
  if (m.allocated) text += ", " + m.allocated->text + " held by tensors";
  if (m.unused) text += ", " + m.unused->text + " reserved by the allocator but unused";
  names.set("oom_numbers", text + ".");
}

// Could the request be met if nothing were fragmented?
void say_arithmetic(const Message& m, Names& names) {
  if (!m.free || !m.unused) return;
  const double both = m.free->gib + m.unused->gib;
  const std::string sum = fmt::format("{:.2f} free + {:.2f} reserved but unused", m.free->gib, m.unused->gib);
  const bool much_unused = m.unused->gib >= m.request->gib / 10;
  if (m.request->gib > both && much_unused) {
    names.set(
        "oom_advice_cannot_help",
        fmt::format("{} = {:.2f} GiB, less than the {:.2f} GiB asked for: even with no fragmentation at all it would "
                    "not fit, so the advice in this message cannot help by itself.",
                    sum, both, m.request->gib));
  } else if (m.request->gib > both) {
    names.set("oom_arithmetic",
              fmt::format("{} is less than the {} asked for: the card is simply full, and the setting that the "
                          "message proposes cannot help.",
                          sum, m.request->text));
  } else if (m.request->gib > m.free->gib && m.unused->gib >= m.request->gib / 2) {
    names.set("oom_fragmented", fmt::format("{} = {:.2f} GiB would be enough for {}.", sum, both, m.request->text));
  }
}

}  // namespace

void read_gpu_memory(std::string_view log, Names& names) {
  static const Pattern any(
      "(?i)(?:CUDA|HIP|MPS backend|GPU) out of memory|CUDA error: out of memory|OutOfMemoryError|"
      "cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|cuda runtime error \\(2\\)|OOM when allocating tensor|"
      "RESOURCE_EXHAUSTED: Out of memory");
  const auto found = any.find(log);
  if (!found) return;
  names.set("oom", "yes", found->place);
  static const Pattern request("(?i)tried to allocate " STOKER_SIZE);
  const auto last = request.find_last(log);
  if (!last) return;
  const Message message = read_message(log.substr(last->place, 2000));
  if (!message.request) return;
  names.set("oom", "yes", last->place);
  names.set("oom_request", message.request->text);
  if (message.total) names.set("oom_total", message.total->text);
  if (message.unused) names.set("oom_reserved", message.unused->text);
  say_numbers(message, names);
  if (message.total && message.others > message.total->gib / 20) {
    names.set("oom_others", fmt::format("Other processes hold {} of the card{}.", gib(message.others),
                                        message.other_processes.empty() ? "" : ": " + message.other_processes));
    names.set("oom_others_do",
              "End the other processes if they are yours (`nvidia-smi`, then `kill PID`); an old notebook kernel is "
              "the usual one.");
  }
  if (message.total && message.request->gib > message.total->gib) {
    names.set("oom_never_fits", fmt::format("{} in one request is more than the whole card of {}.",
                                            message.request->text, message.total->text));
    return;
  }
  say_arithmetic(message, names);
}

}  // namespace stoker::watch
