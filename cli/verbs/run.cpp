#include <memory>

#include <fmt/format.h>

#include "package_directory.h"
#include "run_report.h"
#include "stoker/base/text.h"
#include "stoker/watch/recorder.h"
#include "stoker/watch/report.h"
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

// What the run says about itself; a report that cannot be made does not change how the script ended.
void show(const watch::RecordedRun& done, Json& result, Printer& out) {
  if (!done.json["python"]["recorded"].as_bool()) {
    out.say("stoker: not recorded: " + done.json["python"]["why"].as_string());
    return;
  }
  const auto document = report_of(done.run);
  if (!document) {
    out.say("stoker: no report: " + document.error().message);
    return;
  }
  for (const std::string& line : watch::terminal_report(*document)) out.line(line);
  result.set("report", *document);
}

Exit finish(const watch::RecordedRun& done, const RunArgs& args, Printer& out) {
  const std::string run = done.run.native();
  Json result = Json::object({{"schema", "stoker.run-result.v1"}, {"run", run}, {"exit_code", done.exit_code}});
  result.set("outcome", done.json["outcome"]);
  out.say(fmt::format("stoker: recorded in {}", printable(run)));
  if (!args.no_report) show(done, result, out);
  out.object(result);
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
  return finish(*done, args, out);
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
