#include "stoker/watch/explain.h"

#include <algorithm>
#include <set>

#include "stoker/base/text.h"
#include "watch/explain/causes.h"
#include "watch/explain/names.h"

namespace stoker::watch {
namespace {

constexpr std::size_t kMaxQuote = 200;
constexpr std::size_t kMaxValue = 400;

// Colours and carriage returns (progress bars) are no part of what was said.
std::string cleaned(std::string_view log) {
  std::string out;
  out.reserve(log.size());
  for (std::size_t i = 0; i < log.size(); ++i) {
    if (log[i] == '\x1b' && i + 1 < log.size() && log[i + 1] == '[') {
      i += 2;
      while (i < log.size() && (log[i] < '@' || log[i] > '~')) ++i;
    } else if (log[i] == '\r') {
      if (i + 1 >= log.size() || log[i + 1] != '\n') out += '\n';
    } else {
      out += log[i];
    }
  }
  return out;
}

bool is_name_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

// "{name}" becomes its value. Braces around anything else stay. False when a value is missing.
bool fill(std::string_view text, const Names& names, std::string& out) {
  bool whole = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t end = i + 1;
    while (text[i] == '{' && end < text.size() && is_name_char(text[end])) ++end;
    const bool name = text[i] == '{' && end > i + 2 && end < text.size() && text[end] == '}';
    if (!name) {
      out += text[i];
      continue;
    }
    const auto found = names.values.find(std::string(text.substr(i + 1, end - i - 1)));
    if (found == names.values.end()) {
      whole = false;
    } else {
      out += printable(found->second.substr(0, std::min(kMaxValue, found->second.find('\n'))));
    }
    i = end;
  }
  return whole;
}

std::vector<std::string> fill_all(const std::vector<std::string>& sentences, const Names& names) {
  std::vector<std::string> out;
  for (const std::string& sentence : sentences) {
    std::string filled;
    if (fill(sentence, names, filled)) out.push_back(std::move(filled));
  }
  return out;
}

class Matcher {
 public:
  Matcher(std::string_view log, const Cause& cause, Names names) : log_(log), cause_(cause), names_(std::move(names)) {}

  bool matches() {
    for (const std::string& need : cause_.needs) {
      if (!names_.has(need)) return false;
      if (const auto place = names_.places.find(need); place != names_.places.end()) note(place->second);
    }
    for (const Pattern& pattern : cause_.all) {
      if (!take(pattern)) return false;
    }
    bool any = cause_.any.empty();
    for (const Pattern& pattern : cause_.any) any = take(pattern) || any;
    if (!any) return false;
    for (const Pattern& pattern : cause_.none) {
      if (pattern.find(log_)) return false;
    }
    for (const Pattern& pattern : cause_.names) {
      if (const auto match = pattern.find(log_)) pattern.name_groups(*match, names_);
    }
    return true;
  }

  Explanation explanation() const {
    Explanation out;
    out.cause = cause_.id;
    out.rank = cause_.rank;
    fill(cause_.title, names_, out.title);
    out.why = fill_all(cause_.why, names_);
    out.advice = fill_all(cause_.advice, names_);
    if (!place_) return out;
    out.line = 1 + static_cast<std::size_t>(
                       std::count(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(*place_), '\n'));
    const std::size_t start = *place_ == 0 ? 0 : log_.rfind('\n', *place_ - 1) + 1;
    const std::string_view line = trim(log_.substr(start, log_.find('\n', *place_) - start));
    out.quote = printable(line.substr(0, kMaxQuote)) + (line.size() > kMaxQuote ? "…" : "");
    return out;
  }

 private:
  bool take(const Pattern& pattern) {
    const auto match = pattern.find(log_);
    if (!match) return false;
    pattern.name_groups(*match, names_);
    note(match->place);
    return true;
  }
  void note(std::size_t place) {
    if (!place_) place_ = place;
  }

  const std::string_view log_;
  const Cause& cause_;
  Names names_;
  std::optional<std::size_t> place_;
};

void keep_one_a_family(const Causes& list, std::vector<Explanation>& found) {
  std::set<std::string> seen;
  const auto family = [&](const Explanation& explanation) {
    const auto cause = std::find_if(list.causes.begin(), list.causes.end(),
                                    [&](const Cause& candidate) { return candidate.id == explanation.cause; });
    return cause == list.causes.end() || cause->family.empty() ? explanation.cause : cause->family;
  };
  found.erase(std::remove_if(found.begin(), found.end(),
                             [&](const Explanation& explanation) { return !seen.insert(family(explanation)).second; }),
              found.end());
}

std::string last_error(std::string_view log) {
  static const Pattern error(
      "(?m)^[^\\n]*(?:\\b[A-Z]\\w*(?:Error|Exception)\\b|\\b[Ee]rror:|\\bERROR\\b|\\bfatal\\b)[^\\n]*$");
  const auto match = error.find_last(log);
  if (!match) return "";
  const std::string_view line = trim(match->groups[0]);
  return printable(line.substr(0, kMaxQuote));
}

}  // namespace

ExplainResult explain(std::string_view raw, const ExplainOptions& options) {
  const auto deadline = options.clock->monotonic() + options.time_limit;
  const std::string log = cleaned(raw.substr(0, 2 * kMaxLog));
  const Causes& list = all_causes();
  Names names;
  for (const auto reader : {read_gpu_memory, read_gpu_architecture, read_shapes, read_numbers}) reader(log, names);
  for (const Pattern& pattern : list.names) {
    if (const auto match = pattern.find(log)) pattern.name_groups(*match, names);
  }
  ExplainResult result;
  for (const Cause& cause : list.causes) {
    if (options.clock->monotonic() > deadline) {
      result.timed_out = true;
      break;
    }
    Matcher matcher(log, cause, names);
    if (matcher.matches()) result.causes.push_back(matcher.explanation());
  }
  std::stable_sort(result.causes.begin(), result.causes.end(),
                   [](const Explanation& a, const Explanation& b) { return a.rank > b.rank; });
  keep_one_a_family(list, result.causes);
  // Beside a real cause a harmless warning is noise.
  if (result.causes.size() > 1 && result.causes.back().cause == "benign-warning") result.causes.pop_back();
  result.last_error = last_error(log);
  return result;
}

Json to_json(const ExplainResult& result, const LogText& log) {
  Json causes = Json::array();
  for (const Explanation& explanation : result.causes) {
    Json why = Json::array();
    for (const auto& sentence : explanation.why) why.push(sentence);
    Json advice = Json::array();
    for (const auto& sentence : explanation.advice) advice.push(sentence);
    causes.push(Json::object({{"cause", explanation.cause},
                              {"title", explanation.title},
                              {"why", std::move(why)},
                              {"advice", std::move(advice)},
                              {"rank", explanation.rank},
                              {"line", explanation.line},
                              {"quote", explanation.quote}}));
  }
  return Json::object({{"schema", "stoker.explain.v1"},
                       {"causes", std::move(causes)},
                       {"last_error", result.last_error},
                       {"left_out_bytes", log.left_out_bytes},
                       {"timed_out", result.timed_out}});
}

}  // namespace stoker::watch
