#include "stoker/feed/stage.h"

#include <memory>

#include <fmt/format.h>

#include "interrupt.h"
#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

struct StageArgs {
  std::string source;
  std::string destination;
  bool force = false;
  bool keep_partial = false;
};

Json as_json(const StageArgs& args, const feed::StageResult& result) {
  const double seconds = std::chrono::duration<double>(result.duration).count();
  return Json::object({{"schema", "stoker.stage.v1"},
                       {"source", args.source},
                       {"destination", args.destination},
                       {"kind", result.kind},
                       {"files", result.files},
                       {"bytes", result.bytes},
                       {"skipped", result.skipped},
                       {"already", result.already},
                       {"seconds", seconds}});
}

// `stoker stage SRC DEST`: a folder or archive to local disk, whole and verified, or not at all.
Exit stage(const StageArgs& args, Printer& out) {
  const InterruptWatch watch;
  feed::StageOptions options;
  options.force = args.force;
  options.keep_partial = args.keep_partial;
  options.notice = out.notice();
  options.progress = out.progress("stage", true);
  options.cancelled = InterruptWatch::asked;
  const auto result = feed::stage(args.source, args.destination, options);
  if (!result) return out.fail(result.error());
  const std::string what = fmt::format("{} files, {}", format_count(result->files), format_size(result->bytes));
  if (result->already) {
    out.line(fmt::format("{} is already there: {} from {}", printable(args.destination), what, printable(args.source)));
  } else {
    out.line(fmt::format("staged {} into {} in {}, every {} verified", what, printable(args.destination),
                         format_duration(result->duration),
                         result->kind == "folder" || result->kind == "tar" ? "size" : "size and checksum"));
    if (result->skipped > 0)
      out.line(fmt::format("skipped {} entries that are no data", format_count(result->skipped)));
  }
  out.object(as_json(args, *result));
  return Exit::kOk;
}

}  // namespace

void add_stage(CommandLine& cli) {
  auto args = std::make_shared<StageArgs>();
  cli.verb("stage", "Bring a folder or archive to local disk, verified",
           [args](Printer& out) { return stage(*args, out); })
      .word("source", args->source, "A folder, or a zip, tar, tar.gz, tar.bz2, tar.xz, tar.zst or 7z archive")
      .word("destination", args->destination, "The folder to stage into; made if missing")
      .flag("--force", args->force, "Also onto a network or FUSE mount, and in spite of the space check")
      .flag("--keep-partial", args->keep_partial, "Of an archive that is cut short, keep the members that are whole");
}

}  // namespace stoker::cli
