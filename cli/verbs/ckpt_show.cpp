#include <fmt/format.h>

#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "verbs.h"
#include "verbs/ckpt_common.h"

namespace stoker::cli {
namespace {

struct CkptShowArgs {
  std::string dir;
  std::string step;
};

Json tensor_json(const save::TensorInfo& tensor) {
  Json shape = Json::array();
  for (const auto extent : tensor.shape) shape.push(extent);
  return Json::object({{"name", tensor.name},
                       {"dtype", tensor.dtype},
                       {"shape", std::move(shape)},
                       {"file", tensor.file},
                       {"offset", tensor.offset},
                       {"size_bytes", tensor.size_bytes},
                       {"hash", tensor.hash}});
}

void print(const save::Description& checkpoint, Printer& out) {
  const save::CheckpointInfo& info = checkpoint.info;
  out.line(fmt::format("step {}, saved {}, {} in {} tensors", info.step, utc_iso(info.created),
                       format_size(info.size_bytes), format_count(info.tensor_count)));
  if (!info.metrics.empty()) out.line(shown_metrics(info.metrics));
  std::string names;
  for (const auto& [name, value] : checkpoint.state.members()) names += (names.empty() ? "" : ", ") + printable(name);
  out.line("state: " + names);
  out.line();
  out.row({"tensor", "dtype", "shape", "size", "file"});
  for (const auto& tensor : checkpoint.tensors) {
    out.row(
        {printable(tensor.name), tensor.dtype, shown_shape(tensor.shape), format_size(tensor.size_bytes), tensor.file});
  }
  out.flush_table();
}

// `stoker ckpt show DIR [STEP]`: what is in one checkpoint, from its manifest alone.
Exit ckpt_show(const CkptShowArgs& args, Printer& out) {
  const auto chosen = choose_checkpoint(args.dir, args.step);
  if (!chosen) return out.fail(chosen.error());
  const auto checkpoint = chosen->store->describe(chosen->step);
  if (!checkpoint) return out.fail(checkpoint.error());
  print(*checkpoint, out);
  Json tensors = Json::array();
  for (const auto& tensor : checkpoint->tensors) tensors.push(tensor_json(tensor));
  out.object(Json::object({{"schema", "stoker.ckpt_show.v1"},
                           {"checkpoint", to_json(checkpoint->info)},
                           {"tensors", std::move(tensors)},
                           {"state", checkpoint->state}}));
  return Exit::kOk;
}

}  // namespace

void add_ckpt_show(CommandLine& cli) {
  auto args = std::make_shared<CkptShowArgs>();
  cli.verb("ckpt show", "Show what is in one checkpoint", [args](Printer& out) { return ckpt_show(*args, out); })
      .word("dir", args->dir, "Directory of checkpoints")
      .word("step", args->step, "A step's number, 'latest' or 'best'; the newest without it", false);
}

}  // namespace stoker::cli
