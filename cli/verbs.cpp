#include "verbs.h"

namespace stoker::cli {

// In the order in which --help lists them.
void add_all_verbs(CommandLine& cli) {
  add_run(cli);
  add_report(cli);
  add_trace(cli);
  cli.add_group("ckpt", "Checkpoints: list, show, verify");
  add_ckpt_copy(cli);
  add_ckpt_diff(cli);
  add_ckpt_list(cli);
  add_ckpt_show(cli);
  add_ckpt_verify(cli);
  add_doctor(cli);
  add_stage(cli);
  add_check(cli);
  add_explain(cli);
  add_version(cli);
}

}  // namespace stoker::cli
