// Is the GPU older or newer than the build of torch? The two have opposite remedies.
#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "watch/explain/names.h"
#include "watch/explain/pattern.h"

namespace stoker::watch {
namespace {

int capability_number(std::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

struct Card {
  std::string name;
  int capability = 0;  // 60 is 6.0
  std::size_t place = 0;
};

std::optional<Card> read_card(std::string_view log) {
  static const Pattern by_sm("(?m)^[ \\t]*(?:\\S*: UserWarning: *)?([^\\n]*?) with CUDA capability sm_(\\d+)");
  static const Pattern by_number("(?i)(?:Found GPU\\d* )?([^\\n]{0,80}?) which is of cuda capability (\\d+)\\.(\\d+)");
  if (const auto match = by_sm.find(log)) {
    return Card{std::string(trim(match->groups[1])), capability_number(match->groups[2]), match->place};
  }
  if (const auto match = by_number.find(log)) {
    return Card{std::string(trim(match->groups[1])),
                capability_number(match->groups[2]) * 10 + capability_number(match->groups[3]), match->place};
  }
  return std::nullopt;
}

// The least and greatest capability that the build has code for; 0 where the log does not say.
struct Build {
  int least = 0;
  int greatest = 0;
};

Build read_build(std::string_view log) {
  Build build;
  static const Pattern list("(?i)supports CUDA capabilities ((?:(?:sm|compute)_\\d+[a-z]?[ ,]*)+)");
  static const Pattern range("\\((\\d+)\\.(\\d+)\\) - \\((\\d+)\\.(\\d+)\\)");
  static const Pattern least("(?i)minimum cuda capability[^\\n\\d]*(\\d+)\\.(\\d+)");
  if (const auto match = list.find(log)) {
    static const Pattern each("_(\\d+)");
    const std::string_view names = match->groups[1];
    for (auto one = each.find(names); one; one = each.find(names, one->end)) {
      const int capability = capability_number(one->groups[1]);
      build.least = build.least == 0 ? capability : std::min(build.least, capability);
      build.greatest = std::max(build.greatest, capability);
    }
  } else if (const auto both = range.find(log)) {
    build.least = capability_number(both->groups[1]) * 10 + capability_number(both->groups[2]);
    build.greatest = capability_number(both->groups[3]) * 10 + capability_number(both->groups[4]);
  } else if (const auto only = least.find(log)) {
    build.least = capability_number(only->groups[1]) * 10 + capability_number(only->groups[2]);
  }
  return build;
}

std::string sm(int capability) {
  return fmt::format("compute capability {}.{} (sm_{})", capability / 10, capability % 10, capability);
}

// Without a warning in the log the card's name may still be there.
void guess_by_name(std::string_view log, Names& names) {
  static const Pattern no_kernel("(?i)no kernel image is available|cudaErrorNoKernelImageForDevice");
  const auto failed = no_kernel.find(log);
  if (!failed) return;
  static const Pattern old_card("(?:Tesla )?(?:[KM][2468]0m?|P100|P40|P4)\\b|GTX (?:Titan|[79]\\d0|10[5-8]0)|TITAN X");
  static const Pattern new_card("RTX (?:PRO \\d+|50[5-9]0)[^\\n]{0,20}|G?B[23]00\\b|Blackwell");
  if (const auto card = old_card.find(log)) {
    names.set(
        "gpu_too_old",
        fmt::format("The log names a {}; current builds of torch no longer include such cards.", trim(card->groups[0])),
        failed->place);
  } else if (const auto newer = new_card.find(log)) {
    names.set(
        "gpu_too_new",
        fmt::format("The log names a {}; builds for CUDA 12.6 and earlier know no such card.", trim(newer->groups[0])),
        failed->place);
  }
}

}  // namespace

void read_gpu_architecture(std::string_view log, Names& names) {
  const auto card = read_card(log);
  if (!card) return guess_by_name(log, names);
  const Build build = read_build(log);
  const std::string who =
      fmt::format("The {} has {}", card->name.empty() ? "GPU" : printable(card->name), sm(card->capability));
  static const Pattern says_old("(?i)no longer supports this GPU because it is too old");
  if (build.least > 0 && card->capability < build.least) {
    names.set("gpu_too_old", fmt::format("{}; this build was made for sm_{} and newer.", who, build.least),
              card->place);
  } else if (build.greatest > 0 && card->capability / 10 > build.greatest / 10) {
    names.set("gpu_too_new", fmt::format("{}; this build ends at sm_{}.", who, build.greatest), card->place);
  } else if (says_old.find(log)) {
    names.set("gpu_too_old", who + "; this build is for newer cards.", card->place);
  } else if (build.least == 0 && build.greatest == 0) {
    guess_by_name(log, names);
  }
}

}  // namespace stoker::watch
