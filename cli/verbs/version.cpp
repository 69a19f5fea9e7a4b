#include "verbs.h"

namespace stoker::cli {
namespace {

// `stoker version`: the version, for scripts that want it as JSON.
Exit version(Printer& out) {
  out.line("stoker " STOKER_VERSION);
  out.object(Json::object({{"schema", "stoker.version.v1"}, {"version", STOKER_VERSION}}));
  return Exit::kOk;
}

}  // namespace

void add_version(CommandLine& cli) { cli.verb("version", "Print the version", version); }

}  // namespace stoker::cli
