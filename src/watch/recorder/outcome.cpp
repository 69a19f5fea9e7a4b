#include "watch/recorder/outcome.h"

#include <sys/wait.h>

#include <csignal>
#include <cstring>

#include <fmt/format.h>

namespace stoker::watch {
namespace {

// From this share of the limit on, a SIGKILL that nobody owns up to is put down to memory.
constexpr double kNearlyFull = 0.9;

std::uint64_t kills(const EndFacts& facts) {
  if (!facts.oom_kills_before || !facts.oom_kills_after) return 0;
  return *facts.oom_kills_after > *facts.oom_kills_before ? *facts.oom_kills_after - *facts.oom_kills_before : 0;
}

std::string why_killed(const EndFacts& facts) {
  if (kills(facts) > 0) return "out of memory: the kernel killed it (the cgroup's oom_kill counter rose while it ran)";
  const bool full = facts.memory_share && *facts.memory_share >= kNearlyFull;
  if (full)
    return fmt::format("probably out of memory: inferred from memory at {:.0f} % of its limit at the last sample",
                       *facts.memory_share * 100);
  return facts.oom_kills_after ? "killed from outside: no out-of-memory kill was counted"
                               : "killed from outside, or for memory: " + facts.oom_kills_after.why;
}

std::string why_signal(int signal, const EndFacts& facts) {
  switch (signal) {
    case SIGKILL:
      return why_killed(facts);
    case SIGSEGV:
      return "segmentation fault in native code; `python -X faulthandler` shows where";
    case SIGBUS:
      return "bus error: a mapped file shrank, or /dev/shm is full";
    case SIGABRT:
      return "aborted by native code, whose message is in its output";
    case SIGINT:
      return "interrupted";
    default:
      return fmt::format("ended by {}", ::strsignal(signal));
  }
}

std::string why_exit(int code, const EndFacts& facts) {
  if (kills(facts) > 0) return "one of its processes was killed for memory (the cgroup's oom_kill counter rose)";
  if (facts.exception) return "an exception ended the script";
  return fmt::format("the script exited with {}", code);
}

}  // namespace

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

Json outcome_json(const EndFacts& facts) {
  if (WIFSIGNALED(facts.wait_status)) {
    const int signal = WTERMSIG(facts.wait_status);
    return Json::object({{"kind", "signal"}, {"signal", signal}, {"why", why_signal(signal, facts)}});
  }
  const int code = WEXITSTATUS(facts.wait_status);
  if (code == 0) return Json::object({{"kind", "finished"}, {"code", 0}, {"why", ""}});
  return Json::object({{"kind", "exit"}, {"code", code}, {"why", why_exit(code, facts)}});
}

}  // namespace stoker::watch
