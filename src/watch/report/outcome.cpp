#include <csignal>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "stoker/watch/report.h"

namespace stoker::watch {
namespace {

std::string signal_name(std::int64_t number) {
  switch (number) {
    case SIGKILL:
      return "SIGKILL";
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGSEGV:
      return "SIGSEGV";
    case SIGABRT:
      return "SIGABRT";
    case SIGBUS:
      return "SIGBUS";
    case SIGHUP:
      return "SIGHUP";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return fmt::format("signal {}", number);
  }
}

}  // namespace

std::string outcome_in_words(const Json& run, double seconds) {
  const Json& outcome = run["outcome"];
  const std::string& kind = outcome["kind"].as_string();
  const std::string& why = outcome["why"].as_string();
  const std::string took = format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
  const std::string because = why.empty() ? "" : fmt::format(" ({})", why);
  if (kind == "finished") return fmt::format("finished after {}{}", took, because);
  if (kind == "exit")
    return fmt::format("failed with exit code {} after {}{}", outcome["code"].as_int(), took, because);
  if (kind == "signal")
    return fmt::format("killed by {} after {}{}", signal_name(outcome["signal"].as_int()), took, because);
  if (kind == "running") return fmt::format("still running, {} recorded so far", took);
  if (kind == "lost") return fmt::format("lost: {}; {} are recorded", why.empty() ? "the recorder died" : why, took);
  return fmt::format("ended after {}{}", took, because);
}

}  // namespace stoker::watch
