#include "verbs.h"

namespace stoker::cli {

// In the order in which --help lists them.
void add_all_verbs(CommandLine& cli) {
  add_run(cli);
  add_report(cli);
  add_version(cli);
}

}  // namespace stoker::cli
