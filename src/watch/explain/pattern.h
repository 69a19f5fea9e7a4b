// RE2 over bytes, with named groups. Private to the room.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watch/explain/names.h"

namespace re2 {
class RE2;
}

namespace stoker::watch {

struct Match {
  std::size_t place = 0;
  std::size_t end = 0;
  std::vector<std::string_view> groups;  // [0] is the whole match; a group that took no part is empty
};

// Threads: may be shared.
class Pattern {
 public:
  explicit Pattern(const std::string& expression);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  // The first match at or after `from`.
  std::optional<Match> find(std::string_view text, std::size_t from = 0) const;
  std::optional<Match> find_last(std::string_view text) const;
  // Puts the match's named groups that took part into `names`.
  void name_groups(const Match& match, Names& names) const;
  // "" when the expression is one.
  std::string error() const;

 private:
  std::unique_ptr<re2::RE2> re_;
};

}  // namespace stoker::watch
