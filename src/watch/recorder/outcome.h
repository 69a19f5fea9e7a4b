// How a run ended, in words.
#pragma once

#include <cstdint>
#include <optional>

#include "stoker/base/json.h"
#include "stoker/base/status.h"

namespace stoker::watch {

struct EndFacts {
  int wait_status = 0;                     // of waitpid()
  Signal<std::uint64_t> oom_kills_before;  // of the cgroup
  Signal<std::uint64_t> oom_kills_after;
  std::optional<double> memory_share;  // of the limit, at the last sample
  bool exception = false;              // the hooks saw one end the script
};

// run.json's outcome: {kind: "finished" | "exit" | "signal", code or signal, why}.
Json outcome_json(const EndFacts& facts);
// What a shell makes of it: the code, or 128 + the signal.
int exit_code_of(int wait_status);

}  // namespace stoker::watch
