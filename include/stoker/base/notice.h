// How a library that never prints tells its owner something: the owner passes a function, the CLI or Python prints.
#pragma once

#include <functional>
#include <string>

namespace stoker {

enum class Severity { kInfo, kWarning };

// Threads: may be called from any thread that the callee owns; must not call back into it.
using Notice = std::function<void(Severity, const std::string& message)>;

// Progress of long work: `done` of `total` units (total 0: not known yet). Same rules as Notice.
struct Progress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::string what;  // the file or step at hand
};
using ProgressSink = std::function<void(const Progress&)>;

}  // namespace stoker
