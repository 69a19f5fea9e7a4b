#include "watch/recorder/sampler.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace stoker::watch {
namespace {

// Reading a process's PSS costs the kernel a walk over its page tables, so workers' memory is read this often.
constexpr unsigned kSamplesPerPss = 5;

double rise(std::uint64_t now, std::uint64_t before) { return now > before ? static_cast<double>(now - before) : 0; }

}  // namespace

Sampler::Sampler(machine::Root root, int pid, std::optional<machine::Nvml> nvml, std::string no_gpu_why)
    : root_(std::move(root)), pid_(pid), nvml_(std::move(nvml)), trainee_(pid) {
  if (!nvml_) mark("gpu", no_gpu_why);
}

void Sampler::mark(const std::string& signal, const std::string& why) {
  for (auto& [name, reason] : signals_) {
    if (name == signal) {
      reason = why;
      return;
    }
  }
  signals_.emplace_back(signal, why);
}

Json Sampler::signals() const {
  Json out = Json::object();
  for (const auto& [name, why] : signals_)
    out.set(name, Json(why.empty() ? Signal<bool>(true) : Signal<bool>::unavailable(why)));
  return out;
}

std::vector<Reading> Sampler::sample(Nanoseconds now) {
  std::vector<Reading> out;
  const Change change = walk_tree(out);
  if (last_) add_rates(change, std::max(1e-3, std::chrono::duration<double>(now - *last_).count()), out);
  add_limits(out);
  add_throttling(out);
  add_gpus(out);
  last_ = now;
  ++samples_;
  return out;
}

Sampler::Change Sampler::walk_tree(std::vector<Reading>& out) {
  Change change;
  std::unordered_map<int, Totals> totals;
  std::vector<int> workers;
  std::uint64_t worker_ticks = 0;
  bool io_seen = false;
  std::vector<int> tree = machine::descendants(pid_, root_);
  tree.push_back(pid_);
  for (const int pid : tree) {
    const auto stat = machine::process_stat(pid, root_).value;
    if (!stat) continue;
    const auto io = machine::process_io(pid, root_);
    const Totals before = totals_.contains(pid) ? totals_[pid] : Totals{};
    totals[pid] = {stat->cpu_ticks, io.value.value_or(before.io)};
    if (pid == trainee_) change.trainee_ticks = rise(stat->cpu_ticks, before.cpu_ticks);
    worker_ticks += stat->reaped_ticks + (pid == trainee_ ? 0 : stat->cpu_ticks);
    change.read_bytes += rise(totals[pid].io.read_bytes, before.io.read_bytes);
    change.write_bytes += rise(totals[pid].io.write_bytes, before.io.write_bytes);
    io_seen = io_seen || io;
    if (pid == trainee_) {
      out.push_back({"memory.trainee", "bytes", static_cast<double>(stat->rss_bytes)});
    } else if (stat->state != 'Z') {
      workers.push_back(pid);
    }
  }
  mark("cpu", totals.empty() ? "/proc shows nothing of the trainee" : "");
  mark("disk", io_seen ? "" : "/proc/<pid>/io cannot be read here");
  totals_ = std::move(totals);
  change.worker_ticks = rise(worker_ticks, worker_ticks_);
  worker_ticks_ = worker_ticks;
  add_worker_memory(workers, out);
  return change;
}

void Sampler::add_worker_memory(const std::vector<int>& workers, std::vector<Reading>& out) {
  if (samples_ % kSamplesPerPss != 0 && !workers.empty()) return;
  double total = 0;
  for (const int pid : workers) {
    const auto pss = machine::process_pss_bytes(pid, root_);
    if (!pss && machine::process_stat(pid, root_)) {
      mark("memory.workers", pss.why);
      return;
    }
    total += static_cast<double>(pss.value.value_or(0));
  }
  mark("memory.workers", "");
  out.push_back({"memory.workers", "bytes", total});
}

void Sampler::add_rates(const Change& change, double seconds, std::vector<Reading>& out) {
  const double tick_seconds = seconds * static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (!totals_.empty()) {
    out.push_back({"cpu.trainee", "cores", change.trainee_ticks / tick_seconds});
    out.push_back({"cpu.workers", "cores", change.worker_ticks / tick_seconds});
  }
  const auto disk = std::find_if(signals_.begin(), signals_.end(), [](const auto& s) { return s.first == "disk"; });
  if (disk == signals_.end() || !disk->second.empty()) return;
  out.push_back({"disk.read", "bytes/s", change.read_bytes / seconds});
  out.push_back({"disk.write", "bytes/s", change.write_bytes / seconds});
}

void Sampler::add_limits(std::vector<Reading>& out) {
  const machine::CpuFacts cpu = machine::cpu_facts(root_);
  out.push_back({"cpu.limit", "cores", cpu.quota ? std::min(*cpu.quota, static_cast<double>(cpu.usable)) : cpu.usable});
  const machine::MemoryFacts memory = machine::memory_facts(root_);
  mark("memory", memory.used ? "" : memory.used.why);
  if (memory.used) out.push_back({"memory.used", "bytes", static_cast<double>(*memory.used)});
  if (memory.limit) out.push_back({"memory.limit", "bytes", static_cast<double>(*memory.limit)});
  memory_share_.reset();
  if (memory.used && memory.limit && *memory.limit > 0)
    memory_share_ = static_cast<double>(*memory.used) / static_cast<double>(*memory.limit);
}

void Sampler::add_throttling(std::vector<Reading>& out) {
  const auto now = machine::cgroup_throttling(root_);
  mark("cpu.throttled", now ? "" : now.why);
  if (!now) return;
  if (throttling_) {
    const double periods = rise((*now).periods, throttling_->periods);
    const double throttled = rise((*now).throttled, throttling_->throttled);
    out.push_back({"cpu.throttled", "share", periods > 0 ? std::min(1.0, throttled / periods) : 0});
  }
  throttling_ = *now;
}

void Sampler::add_gpus(std::vector<Reading>& out) {
  if (!nvml_) return;
  const auto gpus = nvml_->gpus();
  mark("gpu", gpus.empty() ? "NVML lists no GPU" : "");
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const std::string prefix = "gpu." + std::to_string(i) + ".";
    mark(prefix + "busy", gpus[i].busy.why);
    if (gpus[i].busy) out.push_back({prefix + "busy", "share", *gpus[i].busy});
    if (gpus[i].memory_used_bytes)
      out.push_back({prefix + "memory", "bytes", static_cast<double>(*gpus[i].memory_used_bytes)});
    if (gpus[i].power_w) out.push_back({prefix + "power", "watts", *gpus[i].power_w});
  }
}

}  // namespace stoker::watch
