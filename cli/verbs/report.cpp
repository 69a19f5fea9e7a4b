#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "run_report.h"
#include "stoker/base/files.h"
#include "stoker/base/process.h"
#include "stoker/base/run_directory.h"
#include "stoker/base/text.h"
#include "stoker/watch/report.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

struct ReportArgs {
  std::vector<std::string> runs;
  std::string output;
  bool html = false;
  bool open = false;
  bool compare = false;
};

constexpr auto kOpenTimeout = std::chrono::seconds(5);

// Shows the file with whatever the desktop has; a machine without one gets the path, which is printed anyway.
void open_in_browser(const std::filesystem::path& page, Printer& out) {
  const auto opened = run_process({"xdg-open", page.native()}, kOpenTimeout);
  if (!opened || opened->exit_code != 0) out.say("note: no browser could be started here; open the file yourself");
}

Exit write_page(const std::filesystem::path& run, const Json& report, const ReportArgs& args, Printer& out) {
  const auto page = watch::html_page(report);
  if (!page) return out.fail(page.error());
  const std::filesystem::path path = args.output.empty() ? run / "report.html" : std::filesystem::path(args.output);
  const Status written = write_file_durably(FileSystem::real(), path, *page);
  if (!written) return out.fail(written.error());
  std::error_code ignored;
  const std::filesystem::path shown = std::filesystem::absolute(path, ignored);
  out.line(printable(shown.native()));
  out.object(Json::object({{"schema", "stoker.page.v1"}, {"path", shown.native()}, {"size_bytes", page->size()}}));
  if (args.open) open_in_browser(shown, out);
  return Exit::kOk;
}

// `stoker report --compare BEFORE AFTER`: step times, the measured gain beside the predicted one, and the miss.
Exit compare(const ReportArgs& args, Printer& out) {
  if (args.runs.size() != 2) {
    out.say(fmt::format("error: --compare takes two runs, before and after; {} given", args.runs.size()));
    out.say("hint: `stoker report --compare RUN_A RUN_B`");
    return Exit::kUsage;
  }
  const auto before = find_run(runs_root(), args.runs[0]);
  if (!before) return out.fail(before.error());
  const auto after = find_run(runs_root(), args.runs[1]);
  if (!after) return out.fail(after.error());
  const auto comparison = compare_runs(*before, *after);
  if (!comparison) return out.fail(comparison.error());
  for (const std::string& line : watch::terminal_comparison(*comparison)) out.line(line);
  out.object(*comparison);
  return Exit::kOk;
}

// `stoker report [RUN]`: what the run was, what binds it, the one fix and the gain to expect.
Exit report(const ReportArgs& args, Printer& out) {
  if (args.compare) return compare(args, out);
  if (args.runs.size() > 1) {
    out.say("error: one run at a time; to compare two, use --compare");
    return Exit::kUsage;
  }
  const auto run = find_run(runs_root(), args.runs.empty() ? "" : args.runs[0]);
  if (!run) return out.fail(run.error());
  const auto document = report_of(*run);
  if (!document) return out.fail(document.error());
  if (args.html || args.open || !args.output.empty()) return write_page(*run, *document, args, out);
  for (const std::string& line : watch::terminal_report(*document)) out.line(line);
  out.object(*document);
  return Exit::kOk;
}

}  // namespace

void add_report(CommandLine& cli) {
  auto args = std::make_shared<ReportArgs>();
  cli.verb("report", "What binds a recorded run, the one fix, and the gain to expect",
           [args](Printer& out) { return report(*args, out); })
      .words("run", args->runs, "A run's folder or name; the newest if left out", false)
      .flag("--html", args->html, "Write the page to report.html in the run's folder")
      .option("-o,--output", args->output, "Write the page to this file")
      .flag("--open", args->open, "Write the page and show it in the browser")
      .flag("--compare", args->compare, "Compare two runs: before and after");
}

}  // namespace stoker::cli
