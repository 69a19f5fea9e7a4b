#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "package_directory.h"
#include "stoker/base/text.h"
#include "stoker/watch/recorder.h"
#include "stoker/watch/run_data.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

struct RunArgs {
  std::vector<std::string> command;
  std::string name;
  bool accelerate = false;
  bool no_report = false;
  std::int64_t attach = 0;
};

// A shell's own answers for a command that could not be started.
Exit not_started(const Error& error, Printer& out) {
  (void)out.fail(error);
  return static_cast<Exit>(error.code == ErrorCode::kNotFound ? 127 : 126);
}

bool has_steps(const watch::RunData& data) {
  return std::any_of(data.spans.begin(), data.spans.end(),
                     [&](const watch::Span& span) { return data.names[span.name] == "optimizer"; });
}

// What a run without steps should have had, or "" when it has them.
std::string missing(const watch::RecordedRun& done) {
  if (!done.json["python"]["recorded"].as_bool()) return "not recorded: " + done.json["python"]["why"].as_string();
  const auto data = watch::read_run(done.run);
  if (!data || has_steps(*data)) return "";
  return "no step seen: the script called no torch optimizer's step() while it was recorded; run it until it has "
         "trained a few batches";
}

Exit report(const watch::RecordedRun& done, const RunArgs& args, Printer& out) {
  const std::string run = done.run.native();
  out.say(fmt::format("stoker: recorded in {}", printable(run)));
  if (!args.no_report) {
    if (const std::string what = missing(done); !what.empty()) out.say("stoker: " + what);
  }
  Json object = Json::object({{"schema", "stoker.run-result.v1"}, {"run", run}, {"exit_code", done.exit_code}});
  object.set("outcome", done.json["outcome"]);
  out.object(object);
  return static_cast<Exit>(done.exit_code);
}

watch::RecordOptions options_of(const RunArgs& args, const Printer& out) {
  watch::RecordOptions options;
  options.name = args.name;
  options.package = package_directory();
  options.accelerate = args.accelerate;
  options.stdout_to_stderr = out.json_mode();
  return options;
}

// For the notebook: one line on stdout with where events go, then records until the kernel ends or a signal comes.
Exit attach(const RunArgs& args, Printer& out) {
  const auto ready = [](const std::filesystem::path& run, const std::string& ring) {
    Printer(true).object(Json::object({{"schema", "stoker.attached.v1"}, {"run", run.native()}, {"ring", ring}}));
  };
  const auto done = watch::record_process(static_cast<int>(args.attach), options_of(args, out), ready);
  return done ? Exit::kOk : out.fail(done.error());
}

// `stoker run -- COMMAND …`: records the command, then says what is slow. Exits as the command did.
Exit run(const RunArgs& args, Printer& out) {
  if (args.attach > 0) return attach(args, out);
  if (args.command.empty()) {
    out.say("error: nothing to run");
    out.say("hint: put the command behind two dashes: `stoker run -- python train.py`");
    return Exit::kUsage;
  }
  const auto done = watch::record(args.command, options_of(args, out));
  if (!done) return not_started(done.error(), out);
  return report(*done, args, out);
}

}  // namespace

void add_run(CommandLine& cli) {
  auto args = std::make_shared<RunArgs>();
  cli.verb("run", "Record a training script, unchanged, and say what makes it slow; exits as the script does",
           [args](Printer& out) { return run(*args, out); })
      .option("--name", args->name, "The run's name (default: the script's)")
      .flag("--accelerate", args->accelerate, "Put Stoker's image loader in place of torch's where it knows how")
      .flag("--no-report", args->no_report, "Record only; `stoker report` shows it later")
      .option("--attach", args->attach, "Record a process that already runs, by its pid (used by the notebook)")
      .words("command", args->command, "The command, behind two dashes: -- python train.py", false);
}

}  // namespace stoker::cli
