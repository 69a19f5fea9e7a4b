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

// `stoker trace FILE…`: where the GPUs' time went, by torch.profiler's traces, a file a rank.
Exit trace(const TraceArgs& args, Printer& out) {
  const InterruptWatch interrupt;
  watch::KinetoOptions options;
  options.cancelled = InterruptWatch::asked;
  std::vector<watch::KinetoRank> ranks;
  for (const std::string& file : args.files) {
    auto rank = watch::read_kineto(FileSystem::real(), file, static_cast<std::int64_t>(ranks.size()), options);
    if (!rank) return out.fail(rank.error());
    for (const std::string& problem : rank->problems) {
      out.say(fmt::format("warning: {}: {}", printable(file), problem));
    }
    ranks.push_back(std::move(*rank));
  }
  const auto findings = watch::judge_kineto(ranks);
  for (const watch::KinetoRank& rank : ranks) {
    for (const std::string& line : watch::kineto_summary(rank)) out.line(line);
    out.line();
  }
  print_findings(findings, out);
  out.object(watch::to_json(ranks, findings));
  return Exit::kOk;
}

}  // namespace

void add_trace(CommandLine& cli) {
  auto args = std::make_shared<TraceArgs>();
  cli.verb("trace", "Say where the GPU's time went, by torch.profiler's traces",
           [args](Printer& out) { return trace(*args, out); })
      .words("files", args->files, "FILE.json[.gz] of torch.profiler, one a rank");
}

}  // namespace stoker::cli
