// The 1 Hz look at the trainee and its machine: what each reading means is in docs/formats/events.md.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/base/json.h"
#include "stoker/machine/machine.h"
#include "stoker/machine/process.h"

namespace stoker::watch {

struct Reading {
  std::string name;
  std::string unit;
  double value = 0;
};

// Threads: one owner. A figure that cannot be read is left out, and signals() says why.
class Sampler {
 public:
  // `pid`: the process whose tree is looked at. `nvml`: none where there is no driver.
  Sampler(machine::Root root, int pid, std::optional<machine::Nvml> nvml, std::string no_gpu_why);

  // The process that trains, when it is not the tree's root (a shell script started it).
  void set_trainee(int pid) { trainee_ = pid; }

  // Rates are over the time since the last call; the first call has none.
  std::vector<Reading> sample(Nanoseconds now);

  // {"cpu": {"value": true} or {"value": null, "why": "…"}, …} of the last sample.
  Json signals() const;
  // The share of its limit that memory took at the last sample.
  std::optional<double> memory_share() const { return memory_share_; }

 private:
  struct Totals {  // of one process, as of the last sample
    std::uint64_t cpu_ticks = 0;
    machine::ProcessIo io;
  };
  struct Change {  // since the last sample
    double trainee_ticks = 0;
    double worker_ticks = 0;
    double read_bytes = 0;
    double write_bytes = 0;
  };

  // A worker that ended between two samples has handed its time to whoever waited for it, so the sum over the living
  // and what the tree has reaped misses nothing.
  Change walk_tree(std::vector<Reading>& out);
  void add_rates(const Change& change, double seconds, std::vector<Reading>& out);
  void add_worker_memory(const std::vector<int>& workers, std::vector<Reading>& out);
  void add_limits(std::vector<Reading>& out);
  void add_throttling(std::vector<Reading>& out);
  void add_gpus(std::vector<Reading>& out);
  void mark(const std::string& signal, const std::string& why);  // "" is: works

  const machine::Root root_;
  const int pid_;
  std::optional<machine::Nvml> nvml_;
  int trainee_;

  std::optional<Nanoseconds> last_;
  std::unordered_map<int, Totals> totals_;
  std::uint64_t worker_ticks_ = 0;  // of all children ever, as of the last sample
  std::optional<machine::Throttling> throttling_;
  std::optional<double> memory_share_;
  unsigned samples_ = 0;
  std::vector<std::pair<std::string, std::string>> signals_;
};

}  // namespace stoker::watch
