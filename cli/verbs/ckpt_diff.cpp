#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "verbs.h"
#include "verbs/ckpt_common.h"

namespace stoker::cli {
namespace {

struct CkptDiffArgs {
  std::string dir;
  std::string before;
  std::string after;
};

enum class Change { kSame, kValues, kKind, kRemoved, kAdded };

struct Difference {
  std::string name;
  Change change = Change::kSame;
  std::string before;  // dtype and shape; empty: not there
  std::string after;
};

std::string kind(const save::TensorInfo& tensor) { return tensor.dtype + " " + shown_shape(tensor.shape); }

// Every tensor of either, by name. Values are compared by hash: nothing but the manifests is read.
std::vector<Difference> compare(const save::Description& before, const save::Description& after) {
  std::map<std::string, const save::TensorInfo*> old;
  for (const auto& tensor : before.tensors) old.emplace(tensor.name, &tensor);
  std::vector<Difference> all;
  for (const auto& tensor : after.tensors) {
    const auto it = old.find(tensor.name);
    if (it == old.end()) {
      all.push_back({tensor.name, Change::kAdded, "", kind(tensor)});
      continue;
    }
    const bool alike = it->second->dtype == tensor.dtype && it->second->shape == tensor.shape;
    const Change change = !alike ? Change::kKind : it->second->hash == tensor.hash ? Change::kSame : Change::kValues;
    all.push_back({tensor.name, change, kind(*it->second), kind(tensor)});
    old.erase(it);
  }
  for (const auto& [name, tensor] : old) all.push_back({name, Change::kRemoved, kind(*tensor), ""});
  return all;
}

const char* word(Change change) {
  switch (change) {
    case Change::kSame:
      return "same";
    case Change::kValues:
      return "values differ";
    case Change::kKind:
      return "dtype or shape differs";
    case Change::kRemoved:
      return "removed";
    case Change::kAdded:
      return "added";
  }
  return "";
}

void print(const std::vector<Difference>& all, std::size_t same, Printer& out) {
  for (const Difference& one : all) {
    if (one.change == Change::kSame) continue;
    const std::string kinds = one.change == Change::kKind ? one.before + " → " + one.after
                              : one.after.empty()         ? one.before
                                                          : one.after;
    out.row({printable(one.name), kinds, word(one.change)});
  }
  out.flush_table();
  out.line(fmt::format("{} of {} tensors are the same", same, all.size()));
}

// `stoker ckpt diff DIR A B`: which tensors changed between two steps. Exit 1 when any did.
Exit ckpt_diff(const CkptDiffArgs& args, Printer& out) {
  const auto chosen = choose_checkpoint(args.dir, args.before);
  if (!chosen) return out.fail(chosen.error());
  const auto later = parse_step(args.after, chosen->listing);
  if (!later) return out.fail(later.error());
  const auto before = chosen->store->describe(chosen->step);
  if (!before) return out.fail(before.error());
  const auto after = chosen->store->describe(*later);
  if (!after) return out.fail(after.error());
  const auto all = compare(*before, *after);
  const auto same = static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [](const Difference& one) { return one.change == Change::kSame; }));
  print(all, same, out);
  Json tensors = Json::array();
  for (const Difference& one : all) {
    if (one.change == Change::kSame) continue;
    tensors.push(Json::object({{"name", one.name},
                               {"change", word(one.change)},
                               {"before", one.before.empty() ? Json() : Json(one.before)},
                               {"after", one.after.empty() ? Json() : Json(one.after)}}));
  }
  out.object(Json::object({{"schema", "stoker.ckpt_diff.v1"},
                           {"before", to_json(before->info)},
                           {"after", to_json(after->info)},
                           {"same", same},
                           {"differing", std::move(tensors)}}));
  return same == all.size() ? Exit::kOk : Exit::kNo;
}

}  // namespace

void add_ckpt_diff(CommandLine& cli) {
  auto args = std::make_shared<CkptDiffArgs>();
  cli.verb("ckpt diff", "Say which tensors differ between two checkpoints",
           [args](Printer& out) { return ckpt_diff(*args, out); })
      .word("dir", args->dir, "Directory of checkpoints")
      .word("before", args->before, "A step's number, 'latest' or 'best'")
      .word("after", args->after, "Another");
}

}  // namespace stoker::cli
