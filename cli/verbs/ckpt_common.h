// What the `stoker ckpt` verbs share.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "printer.h"
#include "stoker/base/json.h"
#include "stoker/save/store.h"

namespace stoker::cli {

// The store in `dir`, for reading: works beside the run that writes it.
Result<std::unique_ptr<save::Store>> open_checkpoints(const std::string& dir);

// "" is none; else a number, or "latest" or "best" of `listing`. Errors: kBadInput, kNotFound.
Result<std::optional<save::Step>> parse_step(const std::string& text, const save::Listing& listing);

Json to_json(const save::CheckpointInfo& info);
Json to_json(const save::Damage& damage);

// "acc 0.912  loss 0.31"
std::string shown_metrics(const save::Metrics& metrics);

}  // namespace stoker::cli
