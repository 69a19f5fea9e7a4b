#include "stoker/watch/explain.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

struct ExplainArgs {
  std::string file = "-";
};

Result<watch::LogText> read_input(const std::string& file, Printer& out) {
  if (file == "-") {
    if (::isatty(STDIN_FILENO) == 1) out.say("paste the log, then press Ctrl-D");
    return watch::read_log(STDIN_FILENO);
  }
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno_error(errno, "cannot open " + printable(file));
  auto log = watch::read_log(fd);
  ::close(fd);
  return log;
}

void print_first(const watch::Explanation& cause, Printer& out) {
  out.line(fmt::format("{} [{}]", cause.title, cause.cause));
  if (cause.line > 0) out.line(fmt::format("  line {}: {}", cause.line, cause.quote));
  out.line();
  for (const auto& sentence : cause.why) out.line("  " + sentence);
  out.line("what to do:");
  int number = 0;
  for (const auto& step : cause.advice) out.line(fmt::format("  {}. {}", ++number, step));
}

void print_others(const std::vector<watch::Explanation>& causes, Printer& out) {
  constexpr std::size_t kShown = 4;
  if (causes.size() < 2) return;
  out.line();
  out.line("less likely, but in the log as well:");
  for (std::size_t i = 1; i < causes.size() && i < kShown; ++i) {
    out.line(fmt::format("  {} [{}, line {}]", causes[i].title, causes[i].cause, causes[i].line));
    out.line("    " + causes[i].advice.front());
  }
}

// `stoker explain [FILE]`: the likely cause of an error log, with what to do.
Exit explain(const ExplainArgs& args, Printer& out) {
  const auto log = read_input(args.file, out);
  if (!log) return out.fail(log.error());
  const watch::ExplainResult result = watch::explain(log->text);
  if (log->left_out_bytes > 0) {
    out.say(fmt::format("the log is long: {} in its middle were left out", format_size(log->left_out_bytes)));
  }
  if (result.timed_out) out.say("the log was too slow to search: not every cause was tried");
  out.object(watch::to_json(result, *log));
  if (result.causes.empty()) {
    out.line(trim(log->text).empty() ? "the log is empty" : "none of the causes that Stoker knows matches this text");
    if (!result.last_error.empty()) out.line("its last error: " + result.last_error);
    return Exit::kNo;
  }
  print_first(result.causes.front(), out);
  print_others(result.causes, out);
  return Exit::kOk;
}

}  // namespace

void add_explain(CommandLine& cli) {
  auto args = std::make_shared<ExplainArgs>();
  cli.verb("explain", "Name the likely cause of an error log", [args](Printer& out) { return explain(*args, out); })
      .word("file", args->file, "The log; default: standard input", false);
}

}  // namespace stoker::cli
