// The list of causes, from causes.json. docs/design/watch-explain.md says what each key means. Private to the room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/status.h"
#include "watch/explain/pattern.h"

namespace stoker::watch {

struct Cause {
  std::string id;
  std::string family;  // of causes with one family only the likeliest is shown
  int rank = 0;
  std::vector<std::string> needs;
  std::vector<Pattern> all;
  std::vector<Pattern> any;
  std::vector<Pattern> none;
  std::vector<Pattern> names;
  std::string title;
  std::vector<std::string> why;
  std::vector<std::string> advice;
};

struct Causes {
  std::vector<Pattern> names;  // looked for once, whatever the cause
  std::vector<Cause> causes;
};

// Errors: kCorrupt, naming the entry: what is embedded is checked by a test.
Result<Causes> parse_causes(std::string_view json);

// The embedded file.
extern const std::string_view kCausesJson;
const Causes& all_causes();

}  // namespace stoker::watch
