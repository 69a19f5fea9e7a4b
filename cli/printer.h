// The one place that writes to the terminal: stdout is data, stderr is talk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/base/notice.h"
#include "stoker/base/status.h"

namespace stoker::cli {

enum class Exit {
  kOk = 0,     // done
  kNo = 1,     // the answer is no, or the world refused
  kUsage = 2,  // the command line is wrong
};

// Threads: progress() and notice() may be called from any thread, the rest from one.
class Printer {
 public:
  explicit Printer(bool json = false) : json_(json) {}

  bool json_mode() const { return json_; }
  // One line on stdout. Not in JSON mode, where stdout holds one object alone.
  void line(std::string_view text = "");
  // `cells` padded to the widths of the widest rows so far buffered; flush_table() prints them.
  void row(std::vector<std::string> cells);
  void flush_table();
  // In JSON mode prints `value`, which must have a "schema" member; else nothing.
  void object(const Json& value);
  // One line on stderr, in every mode.
  void say(std::string_view text);
  // "error: …" and "hint: …" on stderr (in JSON mode also {"schema": "stoker.error.v1", …} on stdout). Returns kNo.
  Exit fail(const Error& error);

  Notice notice();
  // A bar that redraws itself on a terminal, and a line each two seconds elsewhere. `unit_bytes`: show sizes, not
  // counts.
  ProgressSink progress(std::string title, bool unit_bytes);
  // Ends the bar's line.
  void end_progress();

 private:
  const bool json_;
  std::vector<std::vector<std::string>> table_;
};

}  // namespace stoker::cli
