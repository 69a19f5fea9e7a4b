// From figures to findings. What a finding loses is a share of the span of GPU work; the first loses most.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/watch/kineto.h"
#include "watch/kineto/percent.h"

namespace stoker::watch {
namespace {

constexpr double kWorthNaming = 15;    // percent of the span, as nothing-to-fix leaves 15 % for all causes
constexpr double kStragglerOver = 10;  // percent more compute than the least of the ranks
constexpr std::uint64_t kLeastSteps = 2;

struct Case {
  const KinetoRank& rank;
  const GpuUse& gpu;
  double pct(std::int64_t ns) const { return kineto::percent(ns, gpu.span_ns); }
  std::string part(std::string_view what, std::int64_t ns) const {
    return fmt::format("rank {}: {} {} of {} ({:.1f} %)", rank.rank, what,
                       format_duration(std::chrono::nanoseconds(ns)),
                       format_duration(std::chrono::nanoseconds(gpu.span_ns)), pct(ns));
  }
};

Finding finding(const char* cause, std::string says, std::int64_t lost_ns) {
  Finding out;
  out.cause = cause;
  out.says = std::move(says);
  out.saved_s = static_cast<double>(lost_ns) / 1e9;
  out.gain = Signal<Gain>::unavailable("a trace shows what is lost at most, not what a change would bring");
  return out;
}

std::optional<Finding> data_bound(const Case& run) {
  if (run.pct(run.gpu.data_wait_ns) < kWorthNaming) return std::nullopt;
  Finding out = finding("data-bound", "The GPU waits while the script waits for its DataLoader", run.gpu.data_wait_ns);
  out.evidence = {run.part("idle during the DataLoader's wait", run.gpu.data_wait_ns)};
  out.confidence = Confidence::kHigh;
  out.fix = "Make the loader faster: decode in threads with Stoker's loader, or give the DataLoader more workers";
  out.fix_line = "loader = stoker.accelerate(loader)";
  return out;
}

std::optional<Finding> launch_bound(const Case& run) {
  if (run.pct(run.gpu.launch_bound_ns) < kWorthNaming) return std::nullopt;
  Finding out =
      finding("launch-bound", "The GPU waits for the host to launch its next kernel", run.gpu.launch_bound_ns);
  out.evidence = {
      run.part("idle while operators ran on the host", run.gpu.launch_bound_ns),
      fmt::format("{} of {} launched pieces of work are shorter than the call that launched them",
                  format_count(run.gpu.launches.shorter_than_launch), format_count(run.gpu.launches.matched))};
  out.confidence = Confidence::kHigh;
  out.fix = "Launch fewer, larger kernels: a larger batch, or a compiled model with CUDA graphs";
  out.fix_line = "model = torch.compile(model, mode=\"reduce-overhead\")";
  return out;
}

std::optional<Finding> host_bound(const Case& run) {
  const std::int64_t rest = run.gpu.idle.host_wait_ns - run.gpu.data_wait_ns - run.gpu.launch_bound_ns;
  if (run.pct(rest) < kWorthNaming) return std::nullopt;
  Finding out = finding("host-bound", "The GPU waits for Python, between the framework's operators", rest);
  out.evidence = {run.part("idle while no operator ran on the host", rest)};
  out.fix = "Look for .item(), print, logging and copies to the host in the loop, and do them every n steps";
  return out;
}

std::optional<Finding> exposed_communication(const Case& run) {
  if (run.pct(run.gpu.exposed_communication_ns) < kWorthNaming) return std::nullopt;
  Finding out = finding("exposed-all-reduce", "Communication between the ranks is not hidden behind compute",
                        run.gpu.exposed_communication_ns);
  out.evidence = {run.part("communication alone", run.gpu.exposed_communication_ns)};
  if (run.gpu.communication_overlap_pct) {
    out.evidence.push_back(
        fmt::format("{:.1f} % of the communication overlaps compute", *run.gpu.communication_overlap_pct));
  }
  out.confidence = Confidence::kHigh;
  out.fix = "Let the reduction of one bucket run while backward computes the next, or send fewer bytes";
  out.fix_line = "model = DistributedDataParallel(model, gradient_as_bucket_view=True, bucket_cap_mb=50)";
  return out;
}

std::optional<Finding> copy_bound(const Case& run) {
  const auto alone = run.gpu.combination_ns.find("memory");
  if (alone == run.gpu.combination_ns.end() || run.pct(alone->second) < kWorthNaming) return std::nullopt;
  Finding out = finding("copy-bound", "Copies and fills run while nothing computes", alone->second);
  out.evidence = {run.part("copies alone", alone->second),
                  run.part("in copies of unpinned memory", run.gpu.pageable_copy_ns)};
  out.fix = "Pin the batches and copy them without waiting";
  out.fix_line = "DataLoader(…, pin_memory=True); x = x.to(\"cuda\", non_blocking=True)";
  return out;
}

std::optional<Finding> stream_wait(const Case& run) {
  if (run.pct(run.gpu.idle.other_ns) < kWorthNaming) return std::nullopt;
  Finding out =
      finding("stream-wait", "Work lies ready and does not start: it waits for an event, a copy or another rank",
              run.gpu.idle.other_ns);
  out.evidence = {run.part("idle with launched work waiting", run.gpu.idle.other_ns)};
  out.confidence = Confidence::kLow;
  out.fix = "Look in the timeline at what ends just before the long gaps; other ranks' traces show if it is they";
  return out;
}

std::optional<Finding> no_tensor_cores(const Case& run) {
  if (!run.gpu.tensor_cores) return std::nullopt;
  const TensorCoreUse& use = *run.gpu.tensor_cores;
  const std::int64_t plain = use.matrix_ns - use.tensor_ns;
  if (run.pct(plain) < kWorthNaming || use.tensor_ns > plain) return std::nullopt;
  Finding out = finding("no-tensor-cores", "Matrix products and convolutions run without Tensor Cores", plain / 2);
  out.evidence = {run.part("in matrix kernels without Tensor Cores", plain),
                  run.part("in matrix kernels with them", use.tensor_ns)};
  out.fix = "Compute in half precision where it is safe, with sizes that are multiples of 8";
  out.fix_line = "with torch.autocast(\"cuda\", dtype=torch.float16): …";
  return out;
}

// How the GPU is used where nothing above costs enough.
Finding fed(const Case& run) {
  const double busy = run.pct(run.gpu.compute_ns);
  const bool full = busy >= 100 - kWorthNaming;
  Finding out = finding(full ? "nothing-to-fix" : "compute-bound",
                        full ? "The GPU computes nearly all the time" : "No single cause holds the GPU back", 0);
  out.evidence = {run.part("computing", run.gpu.compute_ns), run.part("idle", run.gpu.idle_ns)};
  out.fix = "Only less or cheaper computation makes this faster";
  return out;
}

std::optional<std::string> too_little(const KinetoRank& rank) {
  if (!rank.gpu) return rank.gpu.why;
  if (rank.window.steps_seen < kLeastSteps) {
    return fmt::format("{} profiler steps, {} are needed to tell start-up from work", rank.window.steps_seen,
                       kLeastSteps);
  }
  return std::nullopt;
}

void judge_rank(const KinetoRank& rank, std::vector<Finding>& out) {
  using Rule = std::optional<Finding> (*)(const Case&);
  static constexpr Rule kRules[] = {data_bound, launch_bound, host_bound,     exposed_communication,
                                    copy_bound, stream_wait,  no_tensor_cores};
  const Case run{rank, *rank.gpu};
  const std::size_t before = out.size();
  for (const Rule rule : kRules) {
    if (auto found = rule(run)) out.push_back(std::move(*found));
  }
  if (out.size() == before) out.push_back(fed(run));
}

// The rank that computes longest holds up the others, who wait for it in their communication.
void judge_ranks_together(const std::vector<const KinetoRank*>& ranks, std::vector<Finding>& out) {
  const bool one_job = std::all_of(ranks.begin(), ranks.end(), [&](const KinetoRank* rank) {
    return rank->world_size.value == ranks.front()->world_size.value;
  });
  if (ranks.size() < 2 || !one_job) return;
  const auto less = [](const KinetoRank* a, const KinetoRank* b) {
    return (*a->gpu).compute_ns < (*b->gpu).compute_ns;
  };
  const auto [least, most] = std::minmax_element(ranks.begin(), ranks.end(), less);
  const auto low = (*(*least)->gpu).compute_ns;
  const auto high = (*(*most)->gpu).compute_ns;
  const bool communicates = (*(*least)->gpu).communication_ns > 0;
  if (!communicates || low <= 0 || kineto::percent(high - low, low) < kStragglerOver) return;
  Finding found = finding(
      "straggler", fmt::format("Rank {} computes longer than the others, who wait for it", (*most)->rank), high - low);
  found.evidence = {fmt::format("compute: rank {} {}, rank {} {}", (*most)->rank,
                                format_duration(std::chrono::nanoseconds(high)), (*least)->rank,
                                format_duration(std::chrono::nanoseconds(low)))};
  found.fix = "Give every rank the same amount of work: sizes of batches, lengths of sequences, placement of tables";
  out.push_back(std::move(found));
}

// The same cause on several ranks is one finding, that of the rank that loses most, with the evidence of all.
std::vector<Finding> by_cause(std::vector<Finding> all) {
  std::stable_sort(all.begin(), all.end(), [](const Finding& a, const Finding& b) { return a.saved_s > b.saved_s; });
  std::vector<Finding> out;
  for (Finding& next : all) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Finding& f) { return f.cause == next.cause; });
    if (same == out.end()) {
      out.push_back(std::move(next));
    } else {
      same->evidence.insert(same->evidence.end(), next.evidence.begin(), next.evidence.end());
    }
  }
  return out;
}

}  // namespace

std::vector<Finding> judge_kineto(const std::vector<KinetoRank>& ranks) {
  std::vector<Finding> all;
  std::vector<const KinetoRank*> judged;
  std::string why = "no trace";
  for (const KinetoRank& rank : ranks) {
    if (const auto reason = too_little(rank)) {
      why = fmt::format("rank {}: {}", rank.rank, *reason);
      continue;
    }
    judged.push_back(&rank);
    judge_rank(rank, all);
  }
  judge_ranks_together(judged, all);
  if (!all.empty()) return by_cause(std::move(all));
  Finding out = finding("not-enough-evidence", "The trace does not show enough to judge", 0);
  out.evidence = {why};
  out.confidence = Confidence::kLow;
  out.fix = "Record several steps on the GPU, and call the profiler's step() after each";
  out.fix_line = "torch.profiler.profile(schedule=torch.profiler.schedule(wait=5, warmup=2, active=5))";
  return {out};
}

}  // namespace stoker::watch
