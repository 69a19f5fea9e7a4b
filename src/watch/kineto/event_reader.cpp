#include "watch/kineto/event_reader.h"

#include <array>

#include "stoker/base/hash.h"

namespace stoker::watch::kineto {
namespace {

constexpr std::size_t kLongestName = 16 << 10;
constexpr std::int64_t kLongestNs = 1'000'000'000'000'000;  // 11 days

struct Category {
  std::string_view name;
  Kind kind;
};
// Of torch 1.8 to 2.x; the capitalised ones are the oldest.
constexpr std::array kCategories = {
    Category{"kernel", Kind::kKernel},
    Category{"Kernel", Kind::kKernel},
    Category{"gpu_memcpy", Kind::kMemcpy},
    Category{"Memcpy", Kind::kMemcpy},
    Category{"gpu_memset", Kind::kMemset},
    Category{"Memset", Kind::kMemset},
    Category{"cuda_runtime", Kind::kRuntime},
    Category{"Runtime", Kind::kRuntime},
    Category{"cuda_driver", Kind::kRuntime},
    Category{"hip_runtime", Kind::kRuntime},
    Category{"cpu_op", Kind::kOp},
    Category{"Operator", Kind::kOp},
    Category{"user_annotation", Kind::kAnnotation},
};

Kind kind_of(std::string_view category) {
  for (const auto& known : kCategories) {
    if (known.name == category) return known.kind;
  }
  return Kind::kOther;
}

// A string's text, a number's or a bare word's; anything else is passed over and reads as empty.
Scan scalar(Scanner& scanner, std::string_view& text) {
  char next = 0;
  if (const Scan scan = scanner.peek(next); scan != Scan::kOk) return scan;
  if (next == '"') return scanner.string(text);
  if (next == '{' || next == '[') return scanner.skip_value();
  return scanner.number(text);
}

// Calls `member(key)` for each member; it must consume the value.
template <typename Member>
Scan each_member(Scanner& scanner, Member member) {
  char next = 0;
  if (const Scan scan = scanner.peek(next); scan != Scan::kOk) return scan;
  if (next == '}') return scanner.expect('}');
  for (;;) {
    std::string_view key;
    if (const Scan scan = scanner.string(key); scan != Scan::kOk) return scan;
    if (const Scan scan = scanner.expect(':'); scan != Scan::kOk) return scan;
    if (const Scan scan = member(key); scan != Scan::kOk) return scan;
    if (const Scan scan = scanner.peek(next); scan != Scan::kOk) return scan;
    if (next == '}') return scanner.expect('}');
    if (const Scan scan = scanner.expect(','); scan != Scan::kOk) return scan;
  }
}

std::string_view* argument(EventText& text, std::string_view key) {
  switch (key.size()) {
    case 6:
      return key == "stream" ? &text.stream : key == "device" ? &text.device : nullptr;
    case 9:
      return key == "Device Id" ? &text.memory_device : nullptr;
    case 11:
      return key == "correlation" ? &text.correlation : key == "Device Type" ? &text.memory_device_type : nullptr;
    case 14:
      return key == "Total Reserved" ? &text.reserved : nullptr;
    case 15:
      return key == "Total Allocated" ? &text.allocated : nullptr;
    default:
      return nullptr;
  }
}

bool has_wanted_arguments(const EventText& text) {
  if (text.category.empty()) return true;  // not known yet
  const Kind kind = kind_of(text.category);
  return is_gpu_work(kind) || kind == Kind::kRuntime || text.category == "cpu_instant_event";
}

Scan scan_arguments(Scanner& scanner, EventText& text) {
  char next = 0;
  if (const Scan scan = scanner.peek(next); scan != Scan::kOk) return scan;
  if (next != '{' || !has_wanted_arguments(text)) return scanner.skip_value();
  if (const Scan scan = scanner.expect('{'); scan != Scan::kOk) return scan;
  return each_member(scanner, [&](std::string_view key) {
    std::string_view* const wanted = argument(text, key);
    return wanted == nullptr ? scanner.skip_value() : scalar(scanner, *wanted);
  });
}

std::string_view* field(EventText& text, std::string_view key) {
  if (key == "ph") return &text.phase;
  if (key == "ts") return &text.start;
  if (key == "cat") return &text.category;
  if (key == "name") return &text.name;
  if (key == "dur") return &text.duration;
  if (key == "pid") return &text.process;
  if (key == "tid") return &text.thread;
  return nullptr;
}

// A process or a thread may be named by a word.
std::int64_t identity(std::string_view text) {
  std::int64_t value = 0;
  if (parse_integer(text, value)) return value;
  return static_cast<std::int64_t>(hash64(text) >> 1);
}

std::int64_t integer_or(std::string_view text, std::int64_t otherwise) {
  std::int64_t value = otherwise;
  return parse_integer(text, value) ? value : otherwise;
}

Reading read_memory(const EventText& text, Lanes& lanes, Event& event) {
  if (text.name != "[memory]" || text.allocated.empty()) return Reading::kNotNeeded;
  if (!parse_us(text.start, event.start_ns)) return Reading::kUnreadableTime;
  event.kind = Kind::kMemory;
  event.duration_ns = integer_or(text.allocated, 0);
  event.correlation = integer_or(text.reserved, 0);
  // Device type 0 is the host, whose own number is −1.
  const bool host = integer_or(text.memory_device_type, 0) == 0;
  event.lane = lanes.id({host ? -1 : integer_or(text.memory_device, 0), 0});
  return Reading::kKept;
}

}  // namespace

Scan scan_event(Scanner& scanner, EventText& text) {
  return each_member(scanner, [&](std::string_view key) {
    if (key == "args") return scan_arguments(scanner, text);
    std::string_view* const wanted = field(text, key);
    return wanted == nullptr ? scanner.skip_value() : scalar(scanner, *wanted);
  });
}

Reading read_event(const EventText& text, Names& names, Lanes& lanes, Event& event) {
  if (text.phase == "i") return read_memory(text, lanes, event);
  if (text.phase != "X") return Reading::kNotNeeded;
  event.kind = kind_of(text.category);
  if (event.kind == Kind::kOther) return Reading::kNotNeeded;
  if (!parse_us(text.start, event.start_ns)) return Reading::kUnreadableTime;
  if (text.duration.empty()) return Reading::kNoDuration;
  if (!parse_us(text.duration, event.duration_ns) || event.duration_ns > kLongestNs) return Reading::kUnreadableTime;
  if (event.duration_ns < 0) return Reading::kNegativeDuration;

  event.correlation = integer_or(text.correlation, kNoCorrelation);
  if (is_gpu_work(event.kind)) {
    // Kineto repeats device and stream as process and thread.
    const std::string_view device = text.device.empty() ? text.process : text.device;
    const std::string_view stream = text.stream.empty() ? text.thread : text.stream;
    event.lane = lanes.id({identity(device), identity(stream)});
  } else {
    event.lane = lanes.id({identity(text.process), identity(text.thread)});
  }
  const std::string_view name = text.name.substr(0, kLongestName);
  event.name = name.find('\\') == std::string_view::npos ? names.id(name) : names.id(unescape(name));
  return Reading::kKept;
}

}  // namespace stoker::watch::kineto
