#include "watch/explain/pattern.h"

#include <re2/re2.h>

namespace stoker::watch {
namespace {

re2::RE2::Options options() {
  re2::RE2::Options options(re2::RE2::Latin1);  // a log may hold any bytes
  options.set_log_errors(false);
  options.set_max_mem(16 << 20);
  return options;
}

}  // namespace

Pattern::Pattern(const std::string& expression) : re_(std::make_unique<re2::RE2>(expression, options())) {}
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

std::optional<Match> Pattern::find(std::string_view text, std::size_t from) const {
  if (from > text.size()) return std::nullopt;
  std::vector<re2::StringPiece> groups(static_cast<std::size_t>(re_->NumberOfCapturingGroups()) + 1);
  const re2::StringPiece whole(text.data(), text.size());
  if (!re_->Match(whole, from, text.size(), re2::RE2::UNANCHORED, groups.data(), static_cast<int>(groups.size()))) {
    return std::nullopt;
  }
  Match match;
  match.place = static_cast<std::size_t>(groups[0].data() - text.data());
  match.end = match.place + groups[0].size();
  for (const auto& group : groups) match.groups.emplace_back(group.data() == nullptr ? "" : group.data(), group.size());
  return match;
}

std::optional<Match> Pattern::find_last(std::string_view text) const {
  std::optional<Match> last;
  std::size_t from = 0;
  while (auto match = find(text, from)) {
    from = std::max(match->end, from + 1);
    last = std::move(match);
  }
  return last;
}

void Pattern::name_groups(const Match& match, Names& names) const {
  for (const auto& [index, name] : re_->CapturingGroupNames()) {
    const std::string_view group = match.groups[static_cast<std::size_t>(index)];
    if (!group.empty()) names.set(name, std::string(group));
  }
}

std::string Pattern::error() const { return re_->ok() ? "" : re_->error(); }

}  // namespace stoker::watch
