#include "stoker/watch/doctor.h"

#include <cstdlib>
#include <memory>

#include "verbs.h"

namespace stoker::cli {
namespace {

struct DoctorArgs {
  std::string directory = ".";
  bool expect_gpu = false;
  std::string python;
};

// `stoker doctor [DIR]`: this machine in about ten lines, and what is odd about it.
Exit doctor(const DoctorArgs& args, Printer& out) {
  watch::DoctorOptions options;
  options.directory = args.directory;
  options.expect_gpu = args.expect_gpu;
  options.python = args.python;
  // A recorded machine and another driver library, for tests and for odd installations.
  if (const char* root = std::getenv("STOKER_MACHINE_ROOT")) options.root.path = root;
  if (const char* library = std::getenv("STOKER_NVML_LIBRARY")) options.nvml_library = library;

  const watch::DoctorReport report = watch::doctor(options);
  for (const auto& line : report.machine) out.row({line.label, line.text});
  out.flush_table();
  out.line();
  for (const auto& finding : report.findings) {
    out.line(std::string(watch::name(finding.fitness)) + ": " + finding.what);
    out.line("  do: " + finding.advice);
  }
  if (report.findings.empty()) out.line("nothing is odd about this machine");
  if (!report.fit()) out.line("this machine is not fit to train on as it is");
  out.object(report.json);
  return report.fit() ? Exit::kOk : Exit::kNo;
}

}  // namespace

void add_doctor(CommandLine& cli) {
  auto args = std::make_shared<DoctorArgs>();
  cli.verb("doctor", "Say what this machine is, and what is odd about it",
           [args](Printer& out) { return doctor(*args, out); })
      .word("directory", args->directory, "Where the data and runs will lie", false)
      .option("--python", args->python, "The Python that training uses; default: the one in $VIRTUAL_ENV or $PATH")
      .flag("--expect-gpu", args->expect_gpu, "Exit 1 when there is no GPU that torch can use");
}

}  // namespace stoker::cli
