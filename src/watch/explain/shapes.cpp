// Shapes that differ: in a batch (channels or sizes?), or between a checkpoint and a model (class counts?).
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "watch/explain/names.h"
#include "watch/explain/pattern.h"

namespace stoker::watch {
namespace {

std::vector<long> shape_of(std::string_view text) {
  std::vector<long> shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    long size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error == std::errc()) shape.push_back(size);
    at = error == std::errc() ? next : at + 1;
  }
  return shape;
}

std::string channels_name(long channels) {
  return channels == 1   ? "1 channel (greyscale)"
         : channels == 3 ? "3 channels (RGB)"
         : channels == 4 ? "4 channels (with alpha)"
                         : fmt::format("{} channels", channels);
}

void read_batch(std::string_view log, Names& names) {
  static const Pattern stack(
      "(?i)equal size,? but got \\[([\\d, ]+)\\] at entry (\\d+) and \\[([\\d, ]+)\\] at entry (\\d+)");
  const auto match = stack.find(log);
  if (!match) return;
  const auto first = shape_of(match->groups[1]);
  const auto second = shape_of(match->groups[3]);
  const bool pictures = first.size() == 3 && second.size() == 3;
  const bool sizes = pictures && (first[1] != second[1] || first[2] != second[2]);
  if (pictures && first[0] != second[0] && first[0] <= 4 && second[0] <= 4) {
    names.set(
        "channels_differ",
        fmt::format("Sample {} of the batch has {}, sample {} has {}{}.", match->groups[2], channels_name(first[0]),
                    match->groups[4], channels_name(second[0]), sizes ? "; their sizes differ as well" : ""),
        match->place);
    return;
  }
  names.set("sizes_differ",
            fmt::format("Sample {} and sample {} of the batch have different shapes ({} and {} values a row).",
                        match->groups[2], match->groups[4], first.empty() ? 0 : first.back(),
                        second.empty() ? 0 : second.back()),
            match->place);
}

void read_checkpoint(std::string_view log, Names& names) {
  static const Pattern mismatch(
      "size mismatch for (\\S+): copying a param (?:with shape|of) (?:torch\\.Size\\()?[\\[(]([\\d, ]*)[\\])]\\)? from "
      "checkpoint, "
      "(?:the shape in current model is|where the shape is) (?:torch\\.Size\\()?[\\[(]([\\d, ]*)[\\])]");
  for (auto match = mismatch.find(log); match; match = mismatch.find(log, match->end)) {
    const auto stored = shape_of(match->groups[2]);
    const auto wanted = shape_of(match->groups[3]);
    if (stored.empty() || stored.size() != wanted.size() || stored[0] == wanted[0]) continue;
    if (!std::equal(stored.begin() + 1, stored.end(), wanted.begin() + 1)) continue;
    names.set("shape_mismatch",
              fmt::format("{} classes in the file, {} in the model (layer {})", stored[0], wanted[0],
                          printable(match->groups[1])),
              match->place);
    return;
  }
}

}  // namespace

void read_shapes(std::string_view log, Names& names) {
  read_batch(log, names);
  read_checkpoint(log, names);
}

}  // namespace stoker::watch
