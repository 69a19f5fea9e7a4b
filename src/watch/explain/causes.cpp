#include "watch/explain/causes.h"

#include "stoker/base/json.h"

namespace stoker::watch {
namespace {

std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> out;
  for (const Json& item : list.items()) out.push_back(item.as_string());
  return out;
}

Status take_patterns(const Json& list, const std::string& id, std::vector<Pattern>& into) {
  for (const std::string& expression : strings(list)) {
    Pattern pattern(expression);
    if (!pattern.error().empty()) {
      return Error{ErrorCode::kCorrupt, "cause '" + id + "': " + pattern.error() + " in " + expression};
    }
    into.push_back(std::move(pattern));
  }
  return {};
}

Result<Cause> parse_cause(const Json& entry) {
  Cause cause;
  cause.id = entry["id"].as_string();
  cause.family = entry["family"].as_string();
  cause.rank = static_cast<int>(entry["rank"].as_int());
  cause.needs = strings(entry["needs"]);
  STOKER_TRY(take_patterns(entry["all"], cause.id, cause.all));
  STOKER_TRY(take_patterns(entry["any"], cause.id, cause.any));
  STOKER_TRY(take_patterns(entry["none"], cause.id, cause.none));
  STOKER_TRY(take_patterns(entry["names"], cause.id, cause.names));
  cause.title = entry["title"].as_string();
  cause.why = strings(entry["why"]);
  cause.advice = strings(entry["do"]);
  const bool whole = !cause.id.empty() && !cause.title.empty() && cause.rank > 0 && !cause.advice.empty();
  if (!whole || (cause.needs.empty() && cause.all.empty() && cause.any.empty())) {
    return Error{ErrorCode::kCorrupt, "cause '" + cause.id + "' lacks a title, a rank, advice or anything to match"};
  }
  return cause;
}

}  // namespace

Result<Causes> parse_causes(std::string_view json) {
  const auto parsed = Json::parse(json);
  if (!parsed) return parsed.error();
  Causes list;
  STOKER_TRY(take_patterns((*parsed)["names"], "names", list.names));
  for (const Json& entry : (*parsed)["causes"].items()) {
    auto cause = parse_cause(entry);
    if (!cause) return cause.error();
    list.causes.push_back(std::move(*cause));
  }
  return list;
}

const Causes& all_causes() {
  static const Causes list = [] {
    auto parsed = parse_causes(kCausesJson);
    STOKER_CHECK(parsed.ok(), parsed.error().message);
    return std::move(*parsed);
  }();
  return list;
}

}  // namespace stoker::watch
