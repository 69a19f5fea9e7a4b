#include <algorithm>

#include <fmt/format.h>

#include "stoker/base/units.h"
#include "verbs.h"
#include "verbs/ckpt_common.h"

namespace stoker::cli {
namespace {

struct CkptVerifyArgs {
  std::string dir;
  std::string step;
};

// The newest checkpoint that was found whole, as the next step to take.
std::string hint(const std::vector<save::CheckpointInfo>& checked, const std::vector<save::Damage>& damaged) {
  for (auto info = checked.rbegin(); info != checked.rend(); ++info) {
    const bool bad =
        std::any_of(damaged.begin(), damaged.end(), [&](const auto& damage) { return damage.path == info->path; });
    if (!bad && info->exact) return fmt::format("step {} is whole; loading without a step takes it", info->step);
  }
  return "";
}

void print(const std::vector<save::Damage>& damaged, const save::Listing& listing, bool all, std::uint64_t bytes,
           std::size_t count, Printer& out) {
  for (const auto& damage : damaged) out.say(fmt::format("error: step {}: {}", damage.step, damage.error.message));
  if (!damaged.empty()) {
    const std::string next = all ? hint(listing.checkpoints, damaged) : "";
    if (!next.empty()) out.say("hint: " + next);
  } else if (count == 0) {
    out.line("no checkpoint to check");
  } else {
    out.line(fmt::format("{} checkpoint{} whole, {} checked", count, count == 1 ? " is" : "s are", format_size(bytes)));
  }
}

// `stoker ckpt verify DIR [STEP]`: reads every byte; exit 1 when one is not as it was written.
Exit ckpt_verify(const CkptVerifyArgs& args, Printer& out) {
  const auto chosen = choose_checkpoint(args.dir, args.step);
  if (!chosen) return out.fail(chosen.error());
  const auto& [store, listing, step] = *chosen;
  const auto damaged = store->verify(step);
  if (!damaged) return out.fail(damaged.error());
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  for (const auto& info : listing.checkpoints) {
    if (step && info.step != *step) continue;
    bytes += info.size_bytes;
    ++count;
  }
  print(*damaged, listing, !step, bytes, count, out);
  Json list = Json::array();
  for (const auto& damage : *damaged) list.push(to_json(damage));
  out.object(Json::object({{"schema", "stoker.ckpt_verify.v1"},
                           {"whole", damaged->empty()},
                           {"checked", count},
                           {"size_bytes", bytes},
                           {"damaged", std::move(list)}}));
  return damaged->empty() ? Exit::kOk : Exit::kNo;
}

}  // namespace

void add_ckpt_verify(CommandLine& cli) {
  auto args = std::make_shared<CkptVerifyArgs>();
  cli.verb("ckpt verify", "Check every byte of the checkpoints in a directory",
           [args](Printer& out) { return ckpt_verify(*args, out); })
      .word("dir", args->dir, "Directory of checkpoints")
      .word("step", args->step, "A step's number, 'latest' or 'best'; all of them without it", false);
}

}  // namespace stoker::cli
