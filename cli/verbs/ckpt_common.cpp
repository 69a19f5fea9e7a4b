#include "verbs/ckpt_common.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "stoker/base/text.h"

namespace stoker::cli {
namespace {

// JSON has no NaN: such a figure is unavailable, with its name as the reason.
Json figure(double value) {
  if (std::isfinite(value)) return value;
  return Json(Signal<double>::unavailable(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"));
}

Result<std::optional<save::Step>> pointer(const std::optional<save::Step>& step, const std::string& text) {
  if (step) return step;
  return Error{ErrorCode::kNotFound, "no checkpoint is the " + text + " one"};
}

}  // namespace

Result<std::unique_ptr<save::Store>> open_checkpoints(const std::string& dir) {
  save::Store::Options options;
  options.read_only = true;
  auto store = save::Store::open(dir, std::move(options));
  if (store || store.code() != ErrorCode::kNotFound) return store;
  Error error = store.error();
  error.hint = "give the directory that a Store or a Session writes to";
  return error;
}

Result<std::optional<save::Step>> parse_step(const std::string& text, const save::Listing& listing) {
  if (text.empty()) return std::optional<save::Step>();
  if (text == "latest") return pointer(listing.latest, text);
  if (text == "best") return pointer(listing.best, text);
  save::Step step = 0;
  const char* end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data(), end, step);
  if (problem == std::errc() && at == end && step >= 0) return std::optional<save::Step>(step);
  return Error{ErrorCode::kBadInput, fmt::format("'{}' is no step", printable(text)),
               "give its number, 'latest' or 'best'"};
}

Result<Chosen> choose_checkpoint(const std::string& dir, const std::string& step) {
  auto store = open_checkpoints(dir);
  if (!store) return store.error();
  auto listing = (*store)->list();
  if (!listing) return listing.error();
  const auto number = parse_step(step, *listing);
  if (!number) return number.error();
  return Chosen{*std::move(store), *std::move(listing), *number};
}

std::string shown_shape(const std::vector<std::uint64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Json to_json(const save::CheckpointInfo& info) {
  Json metrics = Json::object();
  for (const auto& [name, value] : info.metrics) metrics.set(name, figure(value));
  return Json::object({{"step", info.step},
                       {"pin", info.pin.empty() ? Json() : Json(info.pin)},
                       {"exact", info.exact},
                       {"path", info.path.string()},
                       {"created_utc", utc_iso(info.created)},
                       {"size_bytes", info.size_bytes},
                       {"tensor_count", info.tensor_count},
                       {"metrics", std::move(metrics)}});
}

Json to_json(const save::Damage& damage) {
  return Json::object({{"step", damage.step}, {"path", damage.path.string()}, {"why", damage.error.message}});
}

std::string shown_metrics(const save::Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics)
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : "  ", printable(name), value);
  return text;
}

}  // namespace stoker::cli
