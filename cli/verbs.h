// The verbs, one file each under verbs/: a plain function over an arguments struct, and an add_… that puts its flags
// into the table. To add a verb: its file, a line here, a line in verbs.cpp.
#pragma once

#include "command_line.h"

namespace stoker::cli {

void add_run(CommandLine& cli);
void add_report(CommandLine& cli);
void add_ckpt_copy(CommandLine& cli);
void add_ckpt_diff(CommandLine& cli);
void add_ckpt_list(CommandLine& cli);
void add_ckpt_show(CommandLine& cli);
void add_ckpt_verify(CommandLine& cli);
void add_doctor(CommandLine& cli);
void add_check(CommandLine& cli);
void add_explain(CommandLine& cli);
void add_stage(CommandLine& cli);
void add_trace(CommandLine& cli);
void add_version(CommandLine& cli);

void add_all_verbs(CommandLine& cli);

}  // namespace stoker::cli
