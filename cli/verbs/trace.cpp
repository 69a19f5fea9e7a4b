#include <memory>

#include <fmt/format.h>

#include "interrupt.h"
#include "stoker/base/text.h"
#include "stoker/watch/kineto.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

struct TraceArgs {
  std::vector<std::string> files;
  std::string output;
};

void print_findings(const std::vector<watch::Finding>& findings, Printer& out) {
  bool first = true;
  for (const watch::Finding& finding : findings) {
    out.line(fmt::format("{}: {} [{}]", first ? "verdict" : "also", finding.says, finding.cause));
    for (const std::string& line : finding.evidence) out.line("  " + line);
    if (!finding.fix.empty()) out.line("  fix: " + finding.fix);
    if (!finding.fix_line.empty()) out.line("    " + finding.fix_line);
    first = false;
  }
}

// A file that could not be read, beside others that could.
struct Unread {
  std::string file;
  Error error;
};

Json as_json(const std::vector<watch::KinetoRank>& ranks, const std::vector<watch::Finding>& findings,
             const std::vector<Unread>& unread) {
  Json failed = Json::array();
  for (const Unread& one : unread) failed.push(Json::object({{"file", one.file}, {"why", one.error.message}}));
  Json object = watch::to_json(ranks, findings);
  object.set("failed", std::move(failed));
  return object;
}

// `stoker trace FILE…`: where the GPUs' time went, by torch.profiler's traces, a file a rank.
Exit trace(const TraceArgs& args, Printer& out) {
  const InterruptWatch interrupt;
  watch::KinetoOptions options;
  options.cancelled = InterruptWatch::asked;
  std::vector<watch::KinetoRank> ranks;
  std::vector<Unread> unread;
  for (std::size_t i = 0; i < args.files.size(); ++i) {
    const std::string& file = args.files[i];
    auto rank = watch::read_kineto(FileSystem::real(), file, static_cast<std::int64_t>(i), options);
    if (!rank && rank.code() == ErrorCode::kCancelled) return out.fail(rank.error());
    if (!rank) {
      unread.push_back({file, rank.error()});
      continue;
    }
    for (const std::string& problem : rank->problems) {
      out.say(fmt::format("warning: {}: {}", printable(file), printable(problem)));
    }
    ranks.push_back(std::move(*rank));
  }
  if (ranks.empty()) return out.fail(unread.front().error);
  for (const Unread& one : unread) out.say("error: " + one.error.message);
  const auto findings = watch::judge_kineto(ranks);
  for (const watch::KinetoRank& rank : ranks) {
    for (const std::string& line : watch::kineto_summary(rank)) out.line(line);
    out.line();
  }
  print_findings(findings, out);
  Json answer = as_json(ranks, findings, unread);
  if (!args.output.empty()) {
    const Status written = write_file_durably(FileSystem::real(), args.output, watch::kineto_page(ranks, findings));
    if (!written) return out.fail(written.error());
    out.say("page: " + printable(args.output));
    answer.set("page", args.output);
  }
  out.object(answer);
  return unread.empty() ? Exit::kOk : Exit::kNo;
}

}  // namespace

void add_trace(CommandLine& cli) {
  auto args = std::make_shared<TraceArgs>();
  cli.verb("trace", "Say where the GPU's time went, by torch.profiler's traces",
           [args](Printer& out) { return trace(*args, out); })
      .words("files", args->files, "FILE.json[.gz] of torch.profiler, one a rank")
      .option("-o,--output", args->output, "Write the figures as an HTML page to this file too");
}

}  // namespace stoker::cli
