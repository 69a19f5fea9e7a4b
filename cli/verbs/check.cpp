#include "stoker/feed/check.h"

#include <memory>
#include <set>

#include <fmt/format.h>

#include "interrupt.h"
#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

struct CheckArgs {
  std::string directory;
};

constexpr std::size_t kShown = 20;  // of a list; --json has all

std::string joined(const std::map<std::string, std::uint64_t>& counts) {
  std::string text;
  for (const auto& [what, count] : counts) {
    text += (text.empty() ? "" : "; ") + what + ": " + format_count(count);
  }
  return text.empty() ? "none" : text;
}

void print_classes(const feed::CheckReport& report, Printer& out) {
  for (const auto& entry : report.classes) {
    const std::string prefix = entry.split.empty() ? "" : entry.split + "/";
    const std::string name = entry.name.empty() ? "(in no class folder)" : entry.name;
    out.row({"  " + printable(prefix + name), format_count(entry.files)});
  }
  out.flush_table();
}

void print_findings(const std::string& title, const std::vector<feed::FileFinding>& findings, Printer& out) {
  if (findings.empty()) return;
  out.line(fmt::format("{}: {}", title, format_count(findings.size())));
  for (std::size_t i = 0; i < findings.size() && i < kShown; ++i) {
    out.line(fmt::format("  {}: {}", printable(findings[i].path), findings[i].what));
  }
  if (findings.size() > kShown) out.line(fmt::format("  and {} more (--json has all)", findings.size() - kShown));
}

void print_duplicates(const feed::CheckReport& report, Printer& out) {
  if (report.duplicates.empty()) return;
  out.line(fmt::format("the same picture more than once: {} times{}", format_count(report.duplicates.size()),
                       report.across_splits > 0
                           ? fmt::format(", {} of them in more than one split", format_count(report.across_splits))
                           : ""));
  for (std::size_t i = 0; i < report.duplicates.size() && i < kShown; ++i) {
    std::string text;
    for (const auto& path : report.duplicates[i]) text += (text.empty() ? "  " : " = ") + printable(path);
    out.line(text);
  }
  if (report.duplicates.size() > kShown) {
    out.line(fmt::format("  and {} more (--json has all)", report.duplicates.size() - kShown));
  }
}

void print_names(const std::string& title, const std::vector<std::string>& names, Printer& out) {
  if (names.empty()) return;
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  out.line(title + ": " + text);
}

Json findings_json(const std::vector<feed::FileFinding>& findings) {
  Json list = Json::array();
  for (const auto& finding : findings) list.push(Json::object({{"path", finding.path}, {"what", finding.what}}));
  return list;
}

Json names_json(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const auto& name : names) list.push(name);
  return list;
}

Json counts_json(const std::map<std::string, std::uint64_t>& counts) {
  Json object = Json::object();
  for (const auto& [what, count] : counts) object.set(what, count);
  return object;
}

Json as_json(const CheckArgs& args, const feed::CheckReport& report) {
  Json classes = Json::array();
  for (const auto& entry : report.classes) {
    classes.push(Json::object({{"split", entry.split}, {"name", entry.name}, {"files", entry.files}}));
  }
  Json duplicates = Json::array();
  for (const auto& group : report.duplicates) duplicates.push(names_json(group));
  return Json::object({{"schema", "stoker.check.v1"},
                       {"directory", args.directory},
                       {"good", report.good()},
                       {"files", report.files},
                       {"bytes", report.bytes},
                       {"other_files", report.other_files},
                       {"classes", std::move(classes)},
                       {"bad", findings_json(report.bad)},
                       {"odd", findings_json(report.odd)},
                       {"hidden", names_json(report.hidden)},
                       {"looping", names_json(report.looping)},
                       {"empty", names_json(report.empty)},
                       {"formats", counts_json(report.formats)},
                       {"kinds", counts_json(report.kinds)},
                       {"rotated", report.rotated},
                       {"least_side", report.least_side},
                       {"greatest_side", report.greatest_side},
                       {"duplicates", std::move(duplicates)},
                       {"across_splits", report.across_splits}});
}

// `stoker check DIR`: what is in a folder of pictures, and which files are bad.
Exit check(const CheckArgs& args, Printer& out) {
  const InterruptWatch watch;
  feed::CheckOptions options;
  options.progress = out.progress("check", false);
  options.cancelled = InterruptWatch::asked;
  const auto result = feed::check(args.directory, options);
  if (!result) return out.fail(result.error());
  const feed::CheckReport& report = *result;
  std::set<std::string> classes;
  for (const auto& entry : report.classes) classes.insert(entry.name);
  out.line(fmt::format("{}: {} pictures in {} classes, {}", printable(args.directory), format_count(report.files),
                       classes.size(), format_size(report.bytes)));
  print_classes(report, out);
  out.line("formats: " + joined(report.formats));
  out.line("kinds: " + joined(report.kinds));
  if (report.greatest_side > 0)
    out.line(fmt::format("sides: {} to {} pixels", report.least_side, report.greatest_side));
  if (report.rotated > 0) {
    out.line(fmt::format("rotated by EXIF: {} (Pillow and Stoker ignore that unless told otherwise)",
                         format_count(report.rotated)));
  }
  if (report.other_files > 0) out.line(fmt::format("other files: {}", format_count(report.other_files)));
  print_names("hidden folders, skipped", report.hidden, out);
  print_names("links to a folder above them, cut", report.looping, out);
  print_names("class folders without a picture", report.empty, out);
  print_duplicates(report, out);
  print_findings("named as something else", report.odd, out);
  print_findings("bad files", report.bad, out);
  if (report.good()) out.line("every picture can be decoded");
  out.object(as_json(args, report));
  return report.good() ? Exit::kOk : Exit::kNo;
}

}  // namespace

void add_check(CommandLine& cli) {
  auto args = std::make_shared<CheckArgs>();
  cli.verb("check", "Say what is in a folder of pictures, and which files are bad",
           [args](Printer& out) { return check(*args, out); })
      .word("directory", args->directory, "DIR/class/picture, or DIR/train/class/picture");
}

}  // namespace stoker::cli
