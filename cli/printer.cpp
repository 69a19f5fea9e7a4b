#include "printer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "stoker/base/units.h"

namespace stoker::cli {
namespace {

void write_line(std::FILE* stream, std::string_view text) { fmt::print(stream, "{}\n", text); }

// Columns on a terminal: bytes that continue a UTF-8 sequence take none.
std::size_t shown_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

class Bar {
 public:
  Bar(std::string title, bool unit_bytes)
      : title_(std::move(title)), unit_bytes_(unit_bytes), terminal_(::isatty(STDERR_FILENO) == 1) {}

  void show(const Progress& progress) {
    const std::lock_guard lock(mutex_);
    const auto now = Timer::now();
    const bool last = progress.total != 0 && progress.done >= progress.total;
    // A log gets a line each two seconds; short work leaves none.
    if (now - shown_ < (terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(2000)) &&
        !(last && terminal_))
      return;
    shown_ = now;
    const std::string text = describe(progress, now);
    if (terminal_) {
      fmt::print(stderr, "\r\x1b[K{}{}", text, last ? "\n" : "");
      std::fflush(stderr);
    } else {
      write_line(stderr, text);
    }
  }

 private:
  using Timer = std::chrono::steady_clock;

  std::string amount(std::uint64_t n) const { return unit_bytes_ ? format_size(n) : format_count(n); }

  std::string describe(const Progress& progress, Timer::time_point now) const {
    const double seconds = std::max(1e-3, std::chrono::duration<double>(now - start_).count());
    const double rate = static_cast<double>(progress.done) / seconds;
    std::string text = title_ + "  ";
    if (progress.total != 0) {
      const auto percent = progress.done * 100 / progress.total;
      text += fmt::format("{:3}%  [{:<20}]  {} of {}", percent, std::string(percent / 5, '#'), amount(progress.done),
                          amount(progress.total));
    } else {
      text += amount(progress.done);
    }
    text += fmt::format("  {}/s", amount(static_cast<std::uint64_t>(rate)));
    if (progress.total > progress.done && rate > 0) {
      const auto left = static_cast<std::int64_t>(static_cast<double>(progress.total - progress.done) / rate);
      if (left >= 1) text += fmt::format("  {} left", format_duration(std::chrono::seconds(left)));
    }
    return text;
  }

  const std::string title_;
  const bool unit_bytes_;
  const bool terminal_;
  const Timer::time_point start_ = Timer::now();

  std::mutex mutex_;
  Timer::time_point shown_ = start_;
};

}  // namespace

void Printer::line(std::string_view text) {
  if (!json_) write_line(stdout, text);
}

void Printer::row(std::vector<std::string> cells) { table_.push_back(std::move(cells)); }

void Printer::flush_table() {
  std::vector<std::size_t> widths;
  for (const auto& cells : table_) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], shown_width(cells[i]));
  }
  for (const auto& cells : table_) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      text += cells[i];
      if (i + 1 < cells.size()) text += std::string(widths[i] - shown_width(cells[i]) + 2, ' ');
    }
    line(text);
  }
  table_.clear();
}

void Printer::object(const Json& value) {
  STOKER_CHECK(value.has("schema"), "a verb's JSON needs a schema");
  if (!json_) return;
  write_line(stdout, value.dump(2));
  std::fflush(stdout);  // a reader at the other end of a pipe may be waiting for it
}

void Printer::say(std::string_view text) { write_line(stderr, text); }

Exit Printer::fail(const Error& error) {
  say("error: " + error.message);
  if (!error.hint.empty()) say("hint: " + error.hint);
  object(Json::object(
      {{"schema", "stoker.error.v1"}, {"code", name(error.code)}, {"message", error.message}, {"hint", error.hint}}));
  return Exit::kNo;
}

Notice Printer::notice() {
  return [](Severity severity, const std::string& message) {
    write_line(stderr, (severity == Severity::kWarning ? "warning: " : "") + message);
  };
}

ProgressSink Printer::progress(std::string title, bool unit_bytes) {
  return [bar = std::make_shared<Bar>(std::move(title), unit_bytes)](const Progress& progress) { bar->show(progress); };
}

void Printer::end_progress() {
  if (::isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\n");
}

}  // namespace stoker::cli
