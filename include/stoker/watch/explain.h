// From an error log to its likely causes: entries of a data file, matched by RE2, with the numbers read from the log.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/base/json.h"
#include "stoker/base/status.h"

namespace stoker::watch {

struct Explanation {
  std::string cause;  // "oom-on-resume", the entry's id
  std::string title;  // one sentence
  std::vector<std::string> why;
  std::vector<std::string> advice;  // most likely to help first
  int rank = 0;                     // greater is likelier; only the order has a meaning
  std::size_t line = 0;             // of the log, from 1; 0 where the cause rests on the log as a whole
  std::string quote;                // that line, cut to 200 bytes
};

struct ExplainOptions {
  std::chrono::milliseconds time_limit{5000};
  const Clock* clock = &Clock::real();
};

struct ExplainResult {
  std::vector<Explanation> causes;  // likeliest first; empty: no entry matches
  std::string last_error;           // the last line that looks like an error; "" for none
  bool timed_out = false;           // the time was up before every entry had been tried
};

// Explains `log`, which should be no longer than kMaxLog. Cost: some tens of milliseconds, linear in the log.
inline constexpr std::size_t kMaxLog = std::size_t{1} << 20;
ExplainResult explain(std::string_view log, const ExplainOptions& options = {});

// The log from a file descriptor: whole up to kMaxLog, else its first quarter and its last three, with a line between
// that says how much was left out. Errors: kIo.
struct LogText {
  std::string text;
  std::size_t left_out_bytes = 0;
};
Result<LogText> read_log(int fd);

// stoker.explain.v1
Json to_json(const ExplainResult& result, const LogText& log);

}  // namespace stoker::watch
