// Small text tools that more than one room needs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// The candidate nearest to `word` by edit distance, or "" when none is near enough to be a likely slip.
std::string nearest_match(std::string_view word, const std::vector<std::string>& candidates);

// `text` made safe for a terminal and for JSON: control characters and bytes that are not UTF-8 become "\xNN".
std::string printable(std::string_view text);

// `text` as one shell word.
std::string shell_quote(std::string_view text);

// One line per '\n'; a last line without one counts. Views into `text`.
std::vector<std::string_view> split_lines(std::string_view text);
std::string_view trim(std::string_view text);

// Numeric runs compare as numbers: "step-9" < "step-10".
bool natural_less(std::string_view a, std::string_view b);

// `text` with the five characters that HTML reserves escaped.
std::string html_escape(std::string_view text);

}  // namespace stoker
