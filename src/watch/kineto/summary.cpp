// One rank on one screen.
#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "stoker/watch/kineto.h"
#include "watch/kineto/events.h"
#include "watch/kineto/percent.h"

namespace stoker::watch {
namespace {

using kineto::percent;

constexpr std::size_t kKernelsShown = 8;
constexpr std::size_t kOpsShown = 5;
constexpr std::size_t kStepsShown = 8;
constexpr std::size_t kNameShown = 60;

std::string took(std::int64_t ns) { return format_duration(std::chrono::nanoseconds(ns)); }

// A kernel's name without the arguments that fill lines: "void " before it and what lies in <> and () behind it.
std::string short_name(const std::string& full) {
  std::string text = full.starts_with("void ") ? full.substr(5) : full;
  if (!text.starts_with("Mem")) {
    const auto cut = text.find_first_of("<(", text.starts_with("(anonymous") ? 21 : 0);
    const auto anonymous = text.find("(anonymous namespace)");
    if (anonymous != std::string::npos && cut == anonymous) {
      text = text.substr(0, text.find_first_of("<(", anonymous + 21));
    } else if (cut != std::string::npos && cut > 0) {
      text = text.substr(0, cut);
    }
  }
  if (text.size() > kNameShown) text = text.substr(0, kNameShown - 3) + "...";
  return printable(text);
}

void say_time(const GpuUse& gpu, std::vector<std::string>& out) {
  const auto line = [&](std::string_view what, std::int64_t ns, int indent = 2) {
    out.push_back(fmt::format("{:{}}{:<{}} {:>10}  {:5.1f} %", "", indent, what, 34 - indent, took(ns),
                              percent(ns, gpu.span_ns)));
  };
  line("span of GPU work", gpu.span_ns);
  line("computing", gpu.compute_ns);
  line("busy, not computing", gpu.non_compute_ns);
  line("idle", gpu.idle_ns);
  line("waiting for a launch", gpu.idle.host_wait_ns, 4);
  if (gpu.data_wait_ns > 0) line("in the DataLoader's wait", gpu.data_wait_ns, 6);
  line("in the framework's operators", gpu.launch_bound_ns, 6);
  line("starting launched work", gpu.idle.kernel_wait_ns, 4);
  line("other", gpu.idle.other_ns, 4);
  if (gpu.communication_overlap_pct) {
    line("communication", gpu.communication_ns);
    line("not hidden by compute", gpu.exposed_communication_ns, 4);
  }
}

void say_streams(const GpuUse& gpu, std::vector<std::string>& out) {
  out.emplace_back("  stream      pieces        busy   host wait kernel wait       other");
  for (const StreamUse& use : gpu.streams) {
    out.push_back(fmt::format("  {:<8} {:>9} {:>11} {:>11} {:>11} {:>11}", use.stream, format_count(use.count),
                              took(use.busy_ns), took(use.idle.host_wait_ns), took(use.idle.kernel_wait_ns),
                              took(use.idle.other_ns)));
  }
}

void say_kernels(const GpuUse& gpu, std::vector<std::string>& out) {
  std::int64_t all = 0;
  for (const KernelUse& kernel : gpu.kernels) kineto::add_ns(all, kernel.total_ns);
  out.push_back(
      fmt::format("  kernels: {} names, {} runs, {} in all", gpu.kernels.size(), format_count(gpu.count), took(all)));
  for (std::size_t i = 0; i < std::min(kKernelsShown, gpu.kernels.size()); ++i) {
    const KernelUse& kernel = gpu.kernels[i];
    out.push_back(fmt::format("  {:5.1f} % {:>10} {:>8} x  {:<13} {}", percent(kernel.total_ns, all),
                              took(kernel.total_ns), format_count(kernel.count), name(kernel.work),
                              short_name(kernel.name)));
  }
  const Launches& launches = gpu.launches;
  out.push_back(
      fmt::format("  launches: {} found, median {} and 90 % within {} to the start; {} pieces shorter than their call",
                  format_count(launches.matched), took(launches.delay_median_ns), took(launches.delay_p90_ns),
                  format_count(launches.shorter_than_launch)));
  if (gpu.tensor_cores) {
    out.push_back(fmt::format("  Tensor Cores: {} of {} in matrix kernels ({:.1f} %)",
                              took((*gpu.tensor_cores).tensor_ns), took((*gpu.tensor_cores).matrix_ns),
                              percent((*gpu.tensor_cores).tensor_ns, (*gpu.tensor_cores).matrix_ns)));
  } else {
    out.push_back("  Tensor Cores: unavailable: " + gpu.tensor_cores.why);
  }
}

void say_steps(const KinetoRank& rank, std::vector<std::string>& out) {
  if (rank.steps.empty()) {
    out.emplace_back("  no profiler steps: the figures are of the whole trace, start-up included");
    return;
  }
  out.emplace_back("  step                     time    GPU busy  launched");
  for (std::size_t i = 0; i < std::min(kStepsShown, rank.steps.size()); ++i) {
    const KinetoStep& step = rank.steps[i];
    out.push_back(fmt::format("  {:<18} {:>10} {:>11} {:>9}{}", printable(step.name), took(step.duration_ns),
                              took(step.gpu_busy_ns), format_count(step.launched),
                              step.in_window ? "" : "  left out: the profiler stops in it"));
  }
  if (rank.steps.size() > kStepsShown)
    out.push_back(fmt::format("  and {} more (--json has all)", rank.steps.size() - kStepsShown));
}

void say_ops(const KinetoRank& rank, std::vector<std::string>& out) {
  if (rank.ops.empty()) return;
  out.emplace_back("  host operators by their own time");
  for (std::size_t i = 0; i < std::min(kOpsShown, rank.ops.size()); ++i) {
    const OpUse& op = rank.ops[i];
    out.push_back(fmt::format("  {:>10} of {:>10} {:>8} x  {}", took(op.self_ns), took(op.total_ns),
                              format_count(op.count), short_name(op.name)));
  }
}

}  // namespace

std::vector<std::string> kineto_summary(const KinetoRank& rank) {
  std::vector<std::string> out;
  out.push_back(fmt::format("rank {}: {}, {}", rank.rank, printable(rank.file.filename().native()),
                            rank.device ? printable(*rank.device) : "device unknown: " + rank.device.why));
  for (const std::string& problem : rank.problems) out.push_back("  not read: " + printable(problem));
  if (rank.gpu) {
    say_time(*rank.gpu, out);
    say_streams(*rank.gpu, out);
    say_kernels(*rank.gpu, out);
  } else {
    out.push_back("  GPU: unavailable: " + rank.gpu.why);
  }
  say_steps(rank, out);
  say_ops(rank, out);
  for (const MemoryUse& use : rank.memory) {
    out.push_back(
        fmt::format("  memory of {}: at most {} allocated, {} reserved",
                    use.device < 0 ? "the host" : fmt::format("device {}", use.device),
                    format_size(static_cast<std::uint64_t>(std::max<std::int64_t>(0, use.peak_allocated_bytes))),
                    format_size(static_cast<std::uint64_t>(std::max<std::int64_t>(0, use.peak_reserved_bytes)))));
  }
  return out;
}

}  // namespace stoker::watch
