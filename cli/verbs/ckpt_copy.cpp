#include <fmt/format.h>

#include "stoker/base/units.h"
#include "verbs.h"
#include "verbs/ckpt_common.h"

namespace stoker::cli {
namespace {

struct CkptCopyArgs {
  std::string dir;
  std::string to;
  std::string step;
};

// What was read and checked, saved again: a store of its own, durable, with hashes made anew.
Status save_into(save::Store& store, const save::Loaded& loaded) {
  std::vector<save::TensorView> views;
  views.reserve(loaded.tensors.size());
  for (const auto& tensor : loaded.tensors)
    views.push_back({tensor.name, tensor.dtype, tensor.shape, {tensor.bytes.data.get(), tensor.bytes.size_bytes}});
  STOKER_TRY(
      store.save(loaded.info.step, views, {loaded.state, loaded.info.metrics, loaded.info.pin, loaded.info.exact}));
  return store.close();
}

// `stoker ckpt copy DIR TO [STEP]`: one checkpoint, every byte checked, into another directory of checkpoints.
Exit ckpt_copy(const CkptCopyArgs& args, Printer& out) {
  const auto chosen = choose_checkpoint(args.dir, args.step);
  if (!chosen) return out.fail(chosen.error());
  const auto loaded = chosen->store->load(chosen->step);
  if (!loaded) return out.fail(loaded.error());
  for (const auto& damage : loaded->skipped)
    out.say(fmt::format("warning: step {} is damaged and was passed over: {}", damage.step, damage.error.message));
  save::Store::Options options;
  options.keep.last = 0;  // nothing that is there is removed
  options.notice = out.notice();
  const auto target = save::Store::open(args.to, std::move(options));
  if (!target) return out.fail(target.error());
  if (const Status saved = save_into(**target, *loaded); !saved) return out.fail(saved.error());
  const auto copied = (*target)->describe(loaded->info.step, loaded->info.pin);
  if (!copied) return out.fail(copied.error());
  out.line(fmt::format("step {}, {} in {} tensors: {}", copied->info.step, format_size(copied->info.size_bytes),
                       format_count(copied->info.tensor_count), copied->info.path.string()));
  out.object(Json::object({{"schema", "stoker.ckpt_copy.v1"}, {"checkpoint", to_json(copied->info)}}));
  return Exit::kOk;
}

}  // namespace

void add_ckpt_copy(CommandLine& cli) {
  auto args = std::make_shared<CkptCopyArgs>();
  cli.verb("ckpt copy", "Copy a checkpoint into another directory, checking every byte",
           [args](Printer& out) { return ckpt_copy(*args, out); })
      .word("dir", args->dir, "Directory of checkpoints")
      .word("to", args->to, "Another; made if missing, and nothing in it is removed")
      .word("step", args->step, "A step's number, 'latest' or 'best'; the newest whole one without it", false);
}

}  // namespace stoker::cli
