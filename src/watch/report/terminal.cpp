// The report as lines, read off the report document alone, so that terminal, page and JSON cannot differ.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "stoker/watch/report.h"

namespace stoker::watch {
namespace {

constexpr std::size_t kBarWidth = 40;
constexpr std::size_t kMostFindings = 3;

std::string seconds_text(double seconds) {
  return format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

std::string bar(double share) {
  std::string out;
  for (int i = 0, n = static_cast<int>(std::lround(share * static_cast<double>(kBarWidth))); i < n; ++i) out += "█";
  return out;
}

// Columns that `text` takes: bytes that continue a UTF-8 sequence take none.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string pad(std::string text, std::size_t columns) {
  const std::size_t shown = width(text);
  return shown < columns ? text + std::string(columns - shown, ' ') : text;
}

class Lines {
 public:
  explicit Lines(std::size_t columns) : columns_(columns) {}

  // Broken at spaces; lines after the first stand `hang` further in.
  void add(const std::string& text, std::size_t indent = 0, std::size_t hang = 0) {
    std::string line(indent, ' ');
    std::size_t used = indent;
    bool fresh = true;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = std::min(text.find(' ', at + 1), text.size());
      const std::string word = text.substr(at, end - at);
      if (!fresh && used + width(word) > columns_) {
        lines_.push_back(line);
        line = std::string(indent + hang, ' ');
        used = indent + hang;
        at += word.front() == ' ' ? 1 : 0;
        fresh = true;
        continue;
      }
      line += word;
      used += width(word);
      fresh = false;
      at = end;
    }
    lines_.push_back(line);
  }
  // Never broken: bars, and lines to paste.
  void raw(std::string text) { lines_.push_back(std::move(text)); }
  void gap() { lines_.emplace_back(); }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  const std::size_t columns_;
  std::vector<std::string> lines_;
};

std::string command_of(const Json& run) {
  std::string words;
  for (const Json& word : run["command"].items()) words += (words.empty() ? "" : " ") + shell_quote(word.as_string());
  return printable(words);
}

void add_head(const Json& report, Lines& out) {
  const Json& run = report["run"];
  out.add(fmt::format("{}   {}", run["run_id"].as_string(), command_of(run)));
  const Json& m = report["metrics"];
  std::string line = report["outcome"]["says"].as_string();
  line += fmt::format("; {} steps in {} epochs", m["steps"].as_int(), m["epochs"].items().size());
  if (m["samples_per_second"]["value"].is_number())
    line += fmt::format(", {:.0f} samples/s", m["samples_per_second"]["value"].as_double());
  out.add(line);
}

void add_phases(const Json& metrics, Lines& out) {
  const double seconds = metrics["training_seconds"].as_double();
  if (seconds <= 0) return;
  out.gap();
  out.add(fmt::format("where {} of training went", seconds_text(seconds)));
  double sum = 0;
  for (const Json& phase : metrics["phases"].items()) {
    const double percent = phase["percent"].as_double();
    sum += percent;
    if (percent <= 0) continue;
    const std::string line = fmt::format("  {}{:5.1f} %  {}  {}", pad(phase["title"].as_string(), 20), percent,
                                         pad(seconds_text(phase["seconds"].as_double()), 9), bar(percent / 100));
    out.raw(line.substr(0, line.find_last_not_of(' ') + 1));
  }
  out.raw(fmt::format("  {}{:5.1f} %", pad("together", 20), sum));
}

std::string gain_text(const Json& finding, const Json& verdict) {
  const Json& gain = finding["gain_points"];
  if (!gain["value"].is_number()) return "gain not predicted: " + gain["why"].as_string();
  std::string text = fmt::format("predicted gain: {:.0f} % of {} ({:.0f} to {:.0f})", gain["value"].as_double(),
                                 finding["gain_of"].as_string(), gain["low"].as_double(), gain["high"].as_double());
  const double step_ms = verdict["step_ms"].as_double();
  if (finding["gain_of"].as_string() == "step time" && step_ms > 0) {
    text += fmt::format(": a step of {} becomes {}", seconds_text(step_ms / 1e3),
                        seconds_text(step_ms / 1e3 * (1 - gain["value"].as_double() / 100)));
  }
  return text;
}

void add_verdict(const Json& verdict, Lines& out) {
  const auto& findings = verdict["findings"].items();
  out.gap();
  if (findings.empty()) {
    out.add("no verdict: " + verdict["why"].as_string());
    return;
  }
  const Json& first = findings[0];
  out.add(
      fmt::format("what binds it: {} (confidence: {})", first["cause"].as_string(), first["confidence"].as_string()));
  out.add(first["says"].as_string() + ".", 2);
  for (const Json& line : first["evidence"].items()) out.add("- " + line.as_string(), 2, 2);
  out.gap();
  out.add("the fix: " + first["fix"].as_string() + ".", 0, 2);
  if (!first["fix_line"].as_string().empty()) out.raw("    " + first["fix_line"].as_string());
  out.add(gain_text(first, verdict), 2, 2);
  for (std::size_t i = 1; i < std::min(findings.size(), kMostFindings); ++i) {
    out.add(fmt::format("also {}: {}; {}", findings[i]["cause"].as_string(), findings[i]["says"].as_string(),
                        gain_text(findings[i], verdict)),
            0, 2);
  }
}

std::string cores_text(const Json& cpu) {
  if (!cpu["trainee"]["value"].is_number() || !cpu["limit"]["value"].is_number()) return "";
  const double used = cpu["trainee"]["value"].as_double() + cpu["workers"]["value"].as_double();
  return fmt::format("   CPU {:.2f} of {:.3g} cores", used, cpu["limit"]["value"].as_double());
}

std::string memory_text(const Json& m) {
  if (!m["memory_peak_bytes"]["value"].is_number()) return "";
  const auto bytes = [&](const char* key) {
    return format_size(static_cast<std::uint64_t>(m[key]["value"].as_double()));
  };
  std::string text = "   memory at most " + bytes("memory_peak_bytes");
  if (m["memory_limit_bytes"]["value"].is_number()) text += " of " + bytes("memory_limit_bytes");
  return text;
}

void add_figures(const Json& report, Lines& out) {
  const Json& m = report["metrics"];
  out.gap();
  if (m["loop_step_ms"]["value"].is_number()) {
    std::string line = fmt::format("step {}", seconds_text(m["loop_step_ms"]["value"].as_double() / 1e3));
    if (m["step_ms"]["count"].as_int() > 0) {
      line += fmt::format(" (within epochs: median {}, p95 {})", seconds_text(m["step_ms"]["p50"].as_double() / 1e3),
                          seconds_text(m["step_ms"]["p95"].as_double() / 1e3));
    }
    out.add(line + cores_text(m["cpu_cores"]) + memory_text(m));
  }
  if (m["data_wait_ms"]["count"].as_int() > 0) {
    const auto ms = [&](const char* key) { return seconds_text(m["data_wait_ms"][key].as_double() / 1e3); };
    std::string line = fmt::format("data wait p50 {}, p95 {}, p99 {}", ms("p50"), ms("p95"), ms("p99"));
    if (m["first_batch_ms"]["count"].as_int() > 0)
      line += "; first batch of an epoch " + seconds_text(m["first_batch_ms"]["p50"].as_double() / 1e3);
    if (m["checkpoints"]["mb_per_second"]["value"].is_number())
      line += fmt::format("; saves {:.3g} MB/s", m["checkpoints"]["mb_per_second"]["value"].as_double());
    out.add(line);
  }
  std::string start;
  for (const auto& [key, label] : {std::pair("import_done", "import"), std::pair("first_batch", "first batch"),
                                   std::pair("first_step", "first step"), std::pair("first_epoch", "first epoch")}) {
    const Json& value = m["seconds_from_start"][key]["value"];
    if (value.is_number())
      start += fmt::format("{}{} {}", start.empty() ? "" : ", ", label, seconds_text(value.as_double()));
  }
  if (!start.empty()) out.add("from start to: " + start);
}

void add_foot(const Json& report, Lines& out) {
  const Json& overhead = report["overhead"];
  if (overhead["value"].is_number()) {
    out.add(fmt::format("recorder overhead {:.2f} %, {}", 100 * overhead["value"].as_double(),
                        overhead["estimate"].as_bool() ? "an estimate (" + overhead["how"].as_string() + ")"
                                                       : std::string("measured")));
  }
  std::string missing;
  for (const Json& one : report["signals"].items()) {
    if (one["available"].as_bool()) continue;
    missing += fmt::format("{}{} ({})", missing.empty() ? "" : "; ", one["name"].as_string(), one["why"].as_string());
  }
  if (!missing.empty()) out.add("unavailable: " + missing, 0, 2);
}

}  // namespace

std::vector<std::string> terminal_report(const Json& report, std::size_t columns) {
  Lines out(columns);
  add_head(report, out);
  add_phases(report["metrics"], out);
  add_verdict(report["verdict"], out);
  add_figures(report, out);
  add_foot(report, out);
  if (report.has("comparison")) {
    out.gap();
    for (const std::string& line : terminal_comparison(report["comparison"])) out.add(line);
  }
  return out.take();
}

}  // namespace stoker::watch
