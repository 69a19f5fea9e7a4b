// The same figures as one HTML file: tables, bars and a curve, without a script and without the network.
#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "stoker/watch/kineto.h"
#include "watch/kineto/events.h"
#include "watch/kineto/percent.h"

namespace stoker::watch {
namespace {

constexpr std::size_t kRowsShown = 100;

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --line: #d5d9de; --soft: #57606a;
  --compute: #1f7a4d; --communication: #b35900; --memory: #6a4fb3; --host: #c2283b; --start: #d98a94; --other: #8b949e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --paper: #14171a; --line: #33393f; --soft: #9aa4ae;
  --compute: #3fb07a; --communication: #e08a35; --memory: #9b85e0; --host: #f0596b; --start: #a8606a; --other: #6b747d; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto; padding: 1rem;
  max-width: 76rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; } h3 { font-size: 1rem; }
section.finding { border-left: 4px solid var(--host); padding-left: 1rem; margin: 1rem 0; }
pre { overflow-x: auto; border: 1px solid var(--line); padding: .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .5rem 0; }
th, td { text-align: right; padding: .15rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th.text, td.text { text-align: left; } td.name { max-width: 40rem; overflow: hidden; text-overflow: ellipsis; }
.bar { display: flex; height: 1.6rem; margin: .5rem 0; } .bar span { display: block; min-width: 1px; }
.key { list-style: none; } .key span { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 1rem; }
.compute { background: var(--compute); } .communication { background: var(--communication); }
.memory { background: var(--memory); } .host { background: var(--host); } .start { background: var(--start); }
.other { background: var(--other); } .soft { color: var(--soft); }
svg { width: 100%; height: 8rem; border: 1px solid var(--line); } svg path { fill: none; stroke: var(--compute);
  stroke-width: 1.5; vector-effect: non-scaling-stroke; } svg path.reserved { stroke: var(--other); }
)css";

std::string shown_time(std::int64_t ns) { return format_duration(std::chrono::nanoseconds(ns)); }
std::string safe(const std::string& text) { return html_escape(printable(text)); }

std::string findings_html(const std::vector<Finding>& findings) {
  std::string out;
  bool first = true;
  for (const Finding& finding : findings) {
    out += fmt::format("<section class=\"finding\"><h3>{}{} <code>{}</code></h3><ul>",
                       first ? "Verdict: " : "Also: ", safe(finding.says), safe(finding.cause));
    for (const std::string& line : finding.evidence) out += "<li>" + safe(line) + "</li>";
    out += "</ul>";
    if (!finding.fix.empty()) out += "<p>" + safe(finding.fix) + "</p>";
    if (!finding.fix_line.empty()) out += "<pre>" + html_escape(finding.fix_line) + "</pre>";
    out += "</section>\n";
    first = false;
  }
  return out;
}

// The span of GPU work, cut into exclusive parts that add up to it.
std::string time_bar(const GpuUse& gpu) {
  const auto alone = gpu.combination_ns.find("memory");
  const std::int64_t copies = alone == gpu.combination_ns.end() ? 0 : alone->second;
  struct Part {
    const char* style;
    const char* what;
    std::int64_t ns;
  };
  const Part parts[] = {{"compute", "computing", gpu.compute_ns},
                        {"communication", "communication, not hidden", gpu.exposed_communication_ns},
                        {"memory", "copies and fills alone", copies},
                        {"host", "idle: waiting for a launch", gpu.idle.host_wait_ns},
                        {"start", "idle: starting launched work", gpu.idle.kernel_wait_ns},
                        {"other", "idle: other", gpu.idle.other_ns}};
  std::string bar;
  std::string key;
  std::string label;
  for (const Part& part : parts) {
    if (part.ns <= 0) continue;
    const double share = kineto::percent(part.ns, gpu.span_ns);
    bar += fmt::format("<span class=\"{}\" style=\"width:{:.3f}%\"></span>", part.style, share);
    key += fmt::format("<li class=\"key\"><span class=\"{}\"></span>{}: {} ({:.1f} %)</li>", part.style, part.what,
                       shown_time(part.ns), share);
    label += fmt::format("{}{} {:.1f} %", label.empty() ? "" : ", ", part.what, share);
  }
  return fmt::format(
      "<p>{} of GPU work, from its first start to its last end</p><div class=\"bar\" role=\"img\" "
      "aria-label=\"{}\">{}</div><ul>{}</ul>",
      shown_time(gpu.span_ns), label, bar, key);
}

// `head` and `rows` are cells; the first `text_columns` are words, the rest numbers.
std::string table(const std::string& caption, const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows, std::size_t text_columns) {
  std::string out = "<div class=\"wide\"><table><caption>" + caption + "</caption><thead><tr>";
  for (std::size_t i = 0; i < head.size(); ++i) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", i < text_columns ? " class=\"text\"" : "", head[i]);
  }
  out += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += i < text_columns ? fmt::format("<td class=\"text name\" title=\"{0}\">{0}</td>", row[i])
                              : "<td>" + row[i] + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string left_out(std::size_t all) {
  return all > kRowsShown ? fmt::format(" (the first {} of {})", kRowsShown, all) : std::string();
}

std::string gpu_html(const GpuUse& gpu) {
  std::string out = time_bar(gpu);
  std::vector<std::vector<std::string>> streams;
  for (const StreamUse& use : gpu.streams) {
    streams.push_back({std::to_string(use.stream), format_count(use.count), shown_time(use.busy_ns),
                       shown_time(use.idle.host_wait_ns), shown_time(use.idle.kernel_wait_ns),
                       shown_time(use.idle.other_ns)});
  }
  out += table("Streams", {"stream", "pieces", "busy", "host wait", "kernel wait", "other"}, streams, 1);
  std::int64_t all = 0;
  for (const KernelUse& kernel : gpu.kernels) kineto::add_ns(all, kernel.total_ns);
  std::vector<std::vector<std::string>> kernels;
  for (std::size_t i = 0; i < std::min(kRowsShown, gpu.kernels.size()); ++i) {
    const KernelUse& kernel = gpu.kernels[i];
    kernels.push_back({safe(kernel.name), name(kernel.work), kernel.tensor_cores ? "yes" : "",
                       fmt::format("{:.1f} %", kineto::percent(kernel.total_ns, all)), shown_time(kernel.total_ns),
                       format_count(kernel.count), shown_time(kernel.max_ns)});
  }
  return out + table("Kernels" + left_out(gpu.kernels.size()),
                     {"name", "class", "Tensor Cores", "share", "total", "runs", "longest"}, kernels, 3);
}

// Memory over time as two lines, scaled to the device's peak.
std::string memory_html(const MemoryUse& use) {
  const std::int64_t top = std::max({use.peak_reserved_bytes, use.peak_allocated_bytes, std::int64_t{1}});
  const std::int64_t last = use.timeline.empty() ? 1 : std::max<std::int64_t>(1, use.timeline.back().at_ns);
  std::string allocated;
  std::string reserved;
  for (const MemoryUse::Point& point : use.timeline) {
    const double x = 1000.0 * static_cast<double>(point.at_ns) / static_cast<double>(last);
    const auto y = [&](std::int64_t bytes) {
      return std::clamp(100.0 - 100.0 * static_cast<double>(bytes) / static_cast<double>(top), 0.0, 100.0);
    };
    allocated += fmt::format("{}{:.1f} {:.1f}", allocated.empty() ? "M" : " L", x, y(point.allocated_bytes));
    reserved += fmt::format("{}{:.1f} {:.1f}", reserved.empty() ? "M" : " L", x, y(point.reserved_bytes));
  }
  const auto size = [](std::int64_t bytes) {
    return format_size(static_cast<std::uint64_t>(std::max<std::int64_t>(0, bytes)));
  };
  const std::string says = fmt::format("Memory of {}: at most {} allocated (line), {} reserved (grey)",
                                       use.device < 0 ? std::string("the host") : fmt::format("device {}", use.device),
                                       size(use.peak_allocated_bytes), size(use.peak_reserved_bytes));
  return fmt::format(
      "<p>{0}</p><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{0}\">"
      "<path class=\"reserved\" d=\"{1}\"/><path d=\"{2}\"/></svg>\n",
      says, reserved, allocated);
}

std::string rank_html(const KinetoRank& rank) {
  std::string out = fmt::format("<h2>Rank {}: {}</h2><p class=\"soft\">{}; {} events, of which {} count</p>", rank.rank,
                                safe(rank.file.filename().native()),
                                rank.device ? safe(*rank.device) : "device unknown: " + safe(rank.device.why),
                                format_count(rank.events_seen), format_count(rank.events_kept));
  for (const std::string& problem : rank.problems) out += "<p><strong>Not read:</strong> " + safe(problem) + "</p>";
  out += rank.gpu ? gpu_html(*rank.gpu) : "<p>GPU: unavailable: " + safe(rank.gpu.why) + "</p>";
  std::vector<std::vector<std::string>> steps;
  for (std::size_t i = 0; i < std::min(kRowsShown, rank.steps.size()); ++i) {
    const KinetoStep& step = rank.steps[i];
    steps.push_back({safe(step.name), step.in_window ? "" : "left out", shown_time(step.duration_ns),
                     shown_time(step.gpu_busy_ns), format_count(step.launched)});
  }
  if (!steps.empty()) {
    out += table("Steps" + left_out(rank.steps.size()), {"step", "", "time", "GPU busy", "launched"}, steps, 2);
  }
  std::vector<std::vector<std::string>> ops;
  for (std::size_t i = 0; i < std::min(kRowsShown, rank.ops.size()); ++i) {
    const OpUse& op = rank.ops[i];
    ops.push_back({safe(op.name), shown_time(op.self_ns), shown_time(op.total_ns), format_count(op.count)});
  }
  if (!ops.empty()) {
    out += table("Host operators" + left_out(rank.ops.size()), {"operator", "own time", "total", "calls"}, ops, 1);
  }
  for (const MemoryUse& use : rank.memory) out += memory_html(use);
  return out;
}

}  // namespace

std::string kineto_page(const std::vector<KinetoRank>& ranks, const std::vector<Finding>& findings) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>stoker trace</title><style>";
  out += kStyle;
  out += "</style></head><body><main><h1>Where the GPU's time went</h1>\n";
  out += findings_html(findings);
  for (const KinetoRank& rank : ranks) out += rank_html(rank);
  return out + "</main></body></html>\n";
}

}  // namespace stoker::watch
