// What the `stoker ckpt` verbs share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "printer.h"
#include "stoker/base/json.h"
#include "stoker/save/store.h"

namespace stoker::cli {

// The store in `dir`, for reading: works beside the run that writes it.
Result<std::unique_ptr<save::Store>> open_checkpoints(const std::string& dir);

// "" is none; else a number, or "latest" or "best" of `listing`. Errors: kBadInput, kNotFound.
Result<std::optional<save::Step>> parse_step(const std::string& text, const save::Listing& listing);

// A directory of checkpoints and the one of them that the user meant; nothing: all of them, or the newest.
struct Chosen {
  std::unique_ptr<save::Store> store;
  save::Listing listing;
  std::optional<save::Step> step;
};

// Opens `dir` and finds `step` in it, as parse_step() reads it. Errors: also those of open_checkpoints().
Result<Chosen> choose_checkpoint(const std::string& dir, const std::string& step);

// "[64, 3, 7, 7]"
std::string shown_shape(const std::vector<std::uint64_t>& shape);

Json to_json(const save::CheckpointInfo& info);
Json to_json(const save::Damage& damage);

// "acc 0.912  loss 0.31"
std::string shown_metrics(const save::Metrics& metrics);

}  // namespace stoker::cli
