#include <fmt/format.h>

#include "stoker/base/units.h"
#include "verbs.h"
#include "verbs/ckpt_common.h"

namespace stoker::cli {
namespace {

struct CkptListArgs {
  std::string dir;
};

std::string marks(const save::CheckpointInfo& info, const save::Listing& listing) {
  std::string text;
  const auto add = [&](const std::string& mark) { text += (text.empty() ? "" : ", ") + mark; };
  if (info.exact && listing.latest == info.step) add("latest");
  if (info.exact && listing.best == info.step) add("best");
  if (!info.pin.empty()) add("pinned " + info.pin);
  if (!info.exact) add("not exact");
  return text;
}

void print(const save::Listing& listing, Printer& out) {
  if (!listing.checkpoints.empty()) out.row({"step", "saved (UTC)", "size", "tensors", "", "metrics"});
  for (const auto& info : listing.checkpoints) {
    out.row({std::to_string(info.step), utc_iso(info.created), format_size(info.size_bytes),
             format_count(info.tensor_count), marks(info, listing), shown_metrics(info.metrics)});
  }
  out.flush_table();
}

// `stoker ckpt list DIR`: one line a checkpoint, oldest first. Damaged manifests are named on stderr, and exit 1.
Exit ckpt_list(const CkptListArgs& args, Printer& out) {
  const auto store = open_checkpoints(args.dir);
  if (!store) return out.fail(store.error());
  const auto listing = (*store)->list();
  if (!listing) return out.fail(listing.error());
  print(*listing, out);
  if (listing->checkpoints.empty()) out.say(args.dir + " has no checkpoint");
  Json checkpoints = Json::array();
  for (const auto& info : listing->checkpoints) checkpoints.push(to_json(info));
  Json damaged = Json::array();
  for (const auto& damage : listing->damaged) {
    out.say("error: " + damage.error.message);
    damaged.push(to_json(damage));
  }
  out.object(Json::object({{"schema", "stoker.ckpt_list.v1"},
                           {"checkpoints", std::move(checkpoints)},
                           {"latest", listing->latest ? Json(*listing->latest) : Json()},
                           {"best", listing->best ? Json(*listing->best) : Json()},
                           {"damaged", std::move(damaged)}}));
  return listing->damaged.empty() ? Exit::kOk : Exit::kNo;
}

}  // namespace

void add_ckpt_list(CommandLine& cli) {
  auto args = std::make_shared<CkptListArgs>();
  cli.verb("ckpt list", "List the checkpoints in a directory", [args](Printer& out) { return ckpt_list(*args, out); })
      .word("dir", args->dir, "Directory of checkpoints");
}

}  // namespace stoker::cli
