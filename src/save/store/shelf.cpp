#include "save/store/shelf.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "save/store/catalog.h"
#include "save/store/errors.h"
#include "save/store/reader.h"
#include "stoker/base/text.h"

namespace stoker::save {
bool Shelf::vanished(const std::filesystem::path& checkpoint) const {
  return files_.stat(checkpoint).code() == ErrorCode::kNotFound;
}

Result<Listing> Shelf::list() const { return scan(files_, dir_); }

// The checkpoints that a call may mean, newest first.
Result<std::vector<CheckpointInfo>> Shelf::choose(std::optional<Step> step, const std::string& pin) const {
  auto listing = list();
  if (!listing) return listing.error();
  std::vector<CheckpointInfo> fitting;
  for (CheckpointInfo& info : listing->checkpoints) {
    if (step && info.step != *step) continue;
    if (!pin.empty() ? info.pin != pin : !step && !info.exact) continue;
    fitting.push_back(std::move(info));
  }
  std::reverse(fitting.begin(), fitting.end());
  // Of one step, its own checkpoint goes before a pinned one.
  if (step) {
    std::stable_sort(fitting.begin(), fitting.end(),
                     [](const auto& a, const auto& b) { return a.pin.empty() && !b.pin.empty(); });
  }
  if (!fitting.empty()) return fitting;
  for (const Damage& damage : listing->damaged) {
    if (step && damage.step == *step) return damage.error;
  }
  if (listing->checkpoints.empty() && !listing->damaged.empty()) return listing->damaged.back().error;
  Error missing{ErrorCode::kNotFound, step ? fmt::format("{} has no checkpoint of step {}", shown(dir_), *step)
                                           : fmt::format("{} has no checkpoint", shown(dir_))};
  if (!pin.empty()) missing.message += fmt::format(" pinned '{}'", printable(pin));
  if (listing->latest) missing.hint = fmt::format("its newest is step {}", *listing->latest);
  return missing;
}

Result<Loaded> Shelf::load_one(const std::filesystem::path& checkpoint) const {
  const auto manifest = read_manifest(files_, checkpoint);
  if (!manifest) return manifest.error();
  auto tensors = read_tensors(files_, checkpoint, *manifest, threads_);
  if (!tensors) return tensors.error();
  return Loaded{stoker::save::describe(*manifest, checkpoint), *std::move(tensors), manifest->state.dump(), {}};
}

Status Shelf::check_one(const std::filesystem::path& checkpoint) const {
  const auto manifest = read_manifest(files_, checkpoint);
  return manifest ? check_tensors(files_, checkpoint, *manifest, threads_) : manifest.status();
}

Result<Description> Shelf::describe(std::optional<Step> step, const std::string& pin) const {
  for (int looks = 1;; ++looks) {
    const auto found = choose(step, pin);
    if (!found) return found.error();
    const auto& path = found->front().path;
    auto manifest = read_manifest(files_, path);
    if (!manifest) {
      if (vanished(path) && looks < kMaxLooks) continue;
      return manifest.error();
    }
    Description description{found->front(), {}, std::move(manifest->state)};
    for (const StoredTensor& tensor : manifest->tensors) {
      const TensorEntry& entry = tensor.entry;
      description.tensors.push_back({entry.name, entry.dtype, entry.shape, manifest->parts[tensor.part].file,
                                     entry.offset, entry.size_bytes, tensor.hash});
    }
    return description;
  }
}

Result<std::vector<Damage>> Shelf::verify(std::optional<Step> step) const {
  auto listing = list();
  if (!listing) return listing.error();
  std::vector<Damage> damaged;
  bool found = false;
  for (const Damage& damage : listing->damaged) {
    if (step && damage.step != *step) continue;
    found = true;
    damaged.push_back(damage);
  }
  for (const CheckpointInfo& info : listing->checkpoints) {
    if (step && info.step != *step) continue;
    const auto failure = lasting_failure(files_, info.path, [&] { return check_one(info.path); });
    if (failure) damaged.push_back({info.step, info.path, *failure});
    found = found || failure || !vanished(info.path);
  }
  if (step && !found) {
    const auto chosen = choose(step, "");
    if (!chosen) return chosen.error();
  }
  std::sort(damaged.begin(), damaged.end(), [](const Damage& a, const Damage& b) { return a.step < b.step; });
  return damaged;
}

Result<Loaded> Shelf::load(std::optional<Step> step, const std::string& pin) const {
  for (int looks = 1;; ++looks) {
    const auto found = choose(step, pin);
    if (!found) return found.error();
    std::vector<Damage> skipped;
    if (!step && pin.empty()) {
      auto listing = list();
      if (!listing) return listing.error();
      for (Damage& damage : listing->damaged) {
        if (damage.step > found->front().step) skipped.push_back(std::move(damage));
      }
    }
    bool removed = false;
    for (const CheckpointInfo& info : *found) {
      std::optional<Loaded> loaded;
      const auto failure = lasting_failure(files_, info.path, [&]() -> Status {
        auto read = load_one(info.path);
        if (!read) return read.error();
        loaded = *std::move(read);
        return {};
      });
      if (loaded) {
        loaded->skipped = std::move(skipped);
        return *std::move(loaded);
      }
      if (!failure) {
        removed = true;  // newer ones have come meanwhile
        break;
      }
      if (step) return *failure;
      skipped.push_back({info.step, info.path, *failure});
    }
    if (removed && looks < kMaxLooks) continue;
    if (skipped.empty()) return Error{ErrorCode::kNotFound, shown(dir_) + " has no checkpoint any more"};
    Error none = skipped.back().error;
    none.message =
        fmt::format("{} has no whole checkpoint; the newest: {}", shown(dir_), skipped.front().error.message);
    return none;
  }
}

}  // namespace stoker::save
