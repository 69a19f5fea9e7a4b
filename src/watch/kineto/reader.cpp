#include "watch/kineto/reader.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "watch/kineto/event_reader.h"
#include "watch/kineto/scanner.h"

namespace stoker::watch::kineto {
namespace {

constexpr std::size_t kPlacesShown = 3;                        // of unreadable events
constexpr std::size_t kMostEventBytes = std::size_t{1} << 20;  // a longer one has lost its closing quote or brace

// The part of the text that is in memory.
class Window {
 public:
  Window(ByteSource& source, const KinetoOptions& options) : source_(source), options_(options) {}

  Scanner scanner() const { return {text_.data() + at_, text_.data() + text_.size()}; }
  void advance_to(const char* place) { at_ = static_cast<std::size_t>(place - text_.data()); }
  void advance(std::size_t bytes) { at_ += bytes; }
  std::string_view rest() const { return std::string_view(text_).substr(at_); }
  std::uint64_t offset() const { return dropped_ + at_; }
  std::uint64_t read_bytes() const { return dropped_ + text_.size(); }

  // Brings at least as much text again as is left, so that asking again from a value's start stays linear.
  // False at the end of the text, or of what may be held at once (too_large() then).
  Result<bool> grow() {
    const std::size_t had = text_.size() - at_;
    dropped_ += at_;
    text_.erase(0, at_);
    at_ = 0;
    too_large_ = had > options_.max_value_bytes;
    if (too_large_ || read_bytes() > options_.max_text_bytes) return false;
    while (text_.size() < 2 * had || text_.size() == had) {
      if (options_.cancelled()) return Error{ErrorCode::kCancelled, "stopped while reading the trace"};
      auto piece = source_.next();
      if (!piece) return piece.error();
      if (piece->empty()) return text_.size() > had;
      text_ += *piece;
    }
    return true;
  }
  bool too_large() const { return too_large_; }
  bool past_limit() const { return read_bytes() > options_.max_text_bytes; }

 private:
  ByteSource& source_;
  const KinetoOptions& options_;
  std::string text_;
  std::size_t at_ = 0;
  std::uint64_t dropped_ = 0;
  bool too_large_ = false;
};

class Reader {
 public:
  Reader(ByteSource& source, const std::string& shown_name, const KinetoOptions& options)
      : source_(source),
        shown_name_(shown_name),
        options_(options),
        window_(source, options),
        out_(options.max_name_bytes) {}

  Result<TraceText> run() {
    STOKER_TRY(read_all());
    if (!found_events_) return no_trace();
    out_.text_bytes = window_.read_bytes();
    report_counts();
    if (const std::string damage = source_.damage(); !damage.empty()) out_.problems.push_back(damage);
    return std::move(out_);
  }

 private:
  enum class Step { kGo, kEnd };

  // Runs `attempt(scanner)` on ever more text until it says other than kNeedMore. kNeedMore: the text ended first.
  template <typename Attempt>
  Result<Scan> scan(Attempt attempt) {
    for (;;) {
      Scanner scanner = window_.scanner();
      const Scan got = attempt(scanner);
      if (got == Scan::kOk) window_.advance_to(scanner.at());
      if (got != Scan::kNeedMore) return got;
      const auto more = window_.grow();
      if (!more) return more.error();
      if (!*more) return Scan::kNeedMore;
    }
  }

  Status read_all() {
    char first = 0;
    const auto got = scan([&](Scanner& scanner) { return scanner.peek(first); });
    if (!got) return got.error();
    if (*got != Scan::kOk) return {};
    if (first == '[') {  // a bare list of events, as Chrome takes it too
      window_.advance(1);
      const auto ended = read_events();
      return ended ? Status() : Status(ended.error());
    }
    if (first != '{') return {};
    window_.advance(1);
    for (;;) {
      const auto step = read_member();
      if (!step) return step.error();
      if (*step == Step::kEnd) return {};
    }
  }

  // One member of the outermost object, and the comma or brace behind it.
  Result<Step> read_member() {
    std::string_view raw_key;
    char next = 0;
    bool closed = false;
    std::string key;
    const auto got = scan([&](Scanner& scanner) {
      if (const Scan s = scanner.peek(next); s != Scan::kOk) return s;
      if (next == ',') {
        if (const Scan s = scanner.expect(','); s != Scan::kOk) return s;
        if (const Scan s = scanner.peek(next); s != Scan::kOk) return s;
      }
      closed = next == '}';
      if (closed) return scanner.expect('}');
      if (const Scan s = scanner.string(raw_key); s != Scan::kOk) return s;
      key = std::string(raw_key);
      if (const Scan s = scanner.expect(':'); s != Scan::kOk) return s;
      return scanner.peek(next);
    });
    if (!got) return got.error();
    if (*got != Scan::kOk) return stop(*got, window_.offset(), "among the file's members");
    if (closed) return Step::kEnd;
    if (key == "traceEvents" && next == '[') {
      window_.advance(1);
      return read_events();
    }
    return read_other(key);
  }

  Result<Step> read_other(const std::string& key) {
    const char* start = nullptr;
    const auto got = scan([&](Scanner& scanner) {
      start = scanner.at();
      return scanner.skip_value();
    });
    if (!got) return got.error();
    if (*got != Scan::kOk) return stop(*got, window_.offset(), fmt::format("in \"{}\"", printable(key)));
    Json* const wanted = key == "deviceProperties"  ? &out_.devices
                         : key == "distributedInfo" ? &out_.distributed
                                                    : nullptr;
    if (wanted == nullptr) return Step::kGo;
    const std::string_view text(start, static_cast<std::size_t>(window_.scanner().at() - start));
    auto parsed = Json::parse(text, std::size_t{4} << 20);
    if (parsed) {
      *wanted = std::move(*parsed);
    } else {
      out_.problems.push_back(fmt::format("its \"{}\" cannot be read: {}", key, parsed.error().message));
    }
    return Step::kGo;
  }

  Result<Step> read_events() {
    found_events_ = true;
    for (;;) {
      char next = 0;
      EventText text;
      const auto got = scan([&](Scanner& scanner) {
        if (const Scan s = scanner.peek(next); s != Scan::kOk) return s;
        if (next == ',') {
          if (const Scan s = scanner.expect(','); s != Scan::kOk) return s;
          if (const Scan s = scanner.peek(next); s != Scan::kOk) return s;
        }
        if (next == ']') return scanner.expect(']');
        if (const Scan s = scanner.expect('{'); s != Scan::kOk) return s;
        text = EventText();
        const Scan s = scan_event(scanner, text);
        return s == Scan::kNeedMore && window_.rest().size() > kMostEventBytes ? Scan::kBad : s;
      });
      if (!got) return got.error();
      if (*got != Scan::kOk) {
        window_.advance(std::min(window_.rest().find_first_not_of(", \r\n\t"), window_.rest().size()));
        const std::uint64_t place = window_.offset();
        const auto found = find_next_event();
        if (!found) return found.error();
        if (!*found) return stop(*got, place, fmt::format("after {} events", out_.seen));
        note_damage(place);
        continue;
      }
      if (next == ']') return Step::kGo;
      ++out_.seen;
      if (!keep(text)) return Step::kEnd;
    }
  }

  // False once no more events may be kept.
  bool keep(const EventText& text) {
    Event event;
    const Reading reading = read_event(text, out_.names, out_.lanes, event);
    ++readings_[static_cast<std::size_t>(reading)];
    if (reading != Reading::kKept) return true;
    if (out_.events.size() >= options_.max_events) {
      out_.problems.push_back(
          fmt::format("it has more than {} events that count; those after byte {} of its text are left out",
                      options_.max_events, window_.offset()));
      return false;
    }
    out_.events.push(event);
    return true;
  }

  // Past damage, to the next text that looks like the start of an event.
  Result<bool> find_next_event() {
    std::size_t from = 1;
    for (;;) {
      const std::string_view rest = window_.rest();
      for (std::size_t at = rest.find('{', from); at != std::string_view::npos; at = rest.find('{', at + 1)) {
        const std::size_t word = rest.find_first_not_of(" \r\n\t", at + 1);
        if (word == std::string_view::npos || word + 4 > rest.size()) break;
        if (rest.substr(word, 4) == "\"ph\"") {
          window_.advance(at);
          return true;
        }
      }
      // What is left may hold the beginning of one.
      constexpr std::size_t kTail = 256;
      if (rest.size() > kTail) window_.advance(rest.size() - kTail);
      from = rest.size() > kTail ? 0 : from;
      const auto more = window_.grow();
      if (!more) return more.error();
      if (!*more) return false;
    }
  }

  void note_damage(std::uint64_t place) {
    if (bad_places_.size() < kPlacesShown) bad_places_.push_back(place);
    ++bad_events_;
  }

  Result<Step> stop(Scan why, std::uint64_t place, const std::string& where) {
    if (window_.too_large()) {
      out_.problems.push_back(fmt::format("one value is larger than {} bytes {}, at byte {} of its text",
                                          options_.max_value_bytes, where, place));
    } else if (window_.past_limit()) {
      out_.problems.push_back(
          fmt::format("its text is longer than {} bytes; the rest is left out", options_.max_text_bytes));
    } else {
      out_.problems.push_back(fmt::format("its JSON {} at byte {} of its text, {}",
                                          why == Scan::kNeedMore ? "ends early" : "is damaged", place, where));
    }
    return Step::kEnd;
  }

  void report_counts() {
    const auto count = [&](Reading reading) { return readings_[static_cast<std::size_t>(reading)]; };
    const auto say = [&](Reading reading, std::string_view what) {
      if (count(reading) > 0) out_.problems.push_back(fmt::format("{} events {}; left out", count(reading), what));
    };
    say(Reading::kUnreadableTime, "have a time that is no number, or out of range");
    say(Reading::kNegativeDuration, "have a negative duration");
    say(Reading::kNoDuration, "have no duration");
    if (bad_events_ > 0) {
      std::string places;
      for (const auto place : bad_places_) places += fmt::format("{}{}", places.empty() ? "" : ", ", place);
      out_.problems.push_back(fmt::format("{} stretches of its text are no JSON, at byte {}{}; read on behind them",
                                          bad_events_, places, bad_events_ > bad_places_.size() ? ", …" : ""));
    }
    if (out_.names.full()) out_.problems.push_back("its names exceed the limit; later new ones are shown as one");
  }

  Error no_trace() const {
    const std::string damage = source_.damage();
    if (!damage.empty()) {
      return {ErrorCode::kBadInput, fmt::format("{} has no trace that can be read: {}", shown_name_, damage),
              "copy it again from where it was written"};
    }
    return {ErrorCode::kBadInput, shown_name_ + " is not a profiler trace: it has no \"traceEvents\"",
            "give the file that torch.profiler's export_chrome_trace() or tensorboard_trace_handler wrote"};
  }

  ByteSource& source_;
  const std::string& shown_name_;
  const KinetoOptions& options_;
  Window window_;
  TraceText out_;
  bool found_events_ = false;
  std::array<std::uint64_t, 5> readings_{};
  std::vector<std::uint64_t> bad_places_;
  std::uint64_t bad_events_ = 0;
};

}  // namespace

Result<TraceText> read_text(ByteSource& source, const std::string& shown_name, const KinetoOptions& options) {
  return Reader(source, shown_name, options).run();
}

}  // namespace stoker::watch::kineto
