#include "save/store/catalog.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "stoker/base/text.h"

namespace stoker::save {
namespace {

constexpr std::string_view kStepPrefix = "step-";

// The number in "step-4200-…"; 0 when there is none. Only for what has no readable manifest.
Step step_in_name(const std::string& name) {
  Step step = 0;
  std::from_chars(name.data() + std::min(kStepPrefix.size(), name.size()), name.data() + name.size(), step);
  return step;
}

std::optional<double> metric(const CheckpointInfo& checkpoint, const std::string& name) {
  for (const auto& [key, value] : checkpoint.metrics) {
    if (key == name && !std::isnan(value)) return value;
  }
  return std::nullopt;
}

// Checkpoints that the counting rules look at.
bool numbered(const CheckpointInfo& checkpoint) { return checkpoint.pin.empty() && checkpoint.exact; }

void keep_last(const std::vector<CheckpointInfo>& all, std::size_t last, std::set<std::size_t>& kept) {
  std::size_t left = std::max<std::size_t>(1, last);
  for (std::size_t i = all.size(); i-- > 0 && left > 0;) {
    if (!numbered(all[i])) continue;
    kept.insert(i);
    --left;
  }
}

// The first that is at or after each multiple: `count` says how many of them it has behind it.
void keep_first_of_each(const std::vector<CheckpointInfo>& all, std::set<std::size_t>& kept,
                        const std::function<double(const CheckpointInfo&)>& count) {
  double reached = 0;  // the multiple that has its checkpoint
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!numbered(all[i])) continue;
    const double behind = std::floor(count(all[i]));
    if (behind <= reached) continue;
    reached = behind;
    kept.insert(i);
  }
}

void set_pointers(Listing& listing, const Keep& rule) {
  for (const CheckpointInfo& checkpoint : listing.checkpoints) {
    if (checkpoint.exact) listing.latest = checkpoint.step;
  }
  if (const auto best = best_of(listing.checkpoints, rule)) listing.best = listing.checkpoints[*best].step;
}

}  // namespace

Result<Manifest> read_manifest(FileSystem& files, const std::filesystem::path& checkpoint) {
  const auto path = checkpoint / kManifestName;
  auto bytes = files.read(path, kMaxManifestBytes);
  if (!bytes) {
    Error error = bytes.error();
    if (error.code == ErrorCode::kBadInput) error.code = ErrorCode::kCorrupt;  // larger than any that we write
    return error;
  }
  auto manifest = decode(*bytes);
  if (manifest) return manifest;
  Error error = manifest.error();
  error.message = fmt::format("{} cannot be trusted: {}", printable(path.native()), error.message);
  return error;
}

CheckpointInfo describe(const Manifest& manifest, const std::filesystem::path& checkpoint) {
  CheckpointInfo info;
  info.step = manifest.step;
  info.pin = manifest.pin;
  info.exact = manifest.exact;
  info.path = checkpoint;
  info.created = manifest.created;
  for (const StoredTensor& tensor : manifest.tensors) info.size_bytes += tensor.entry.size_bytes;
  info.tensor_count = manifest.tensors.size();
  info.metrics = manifest.metrics;
  return info;
}

void sort_by_step(std::vector<CheckpointInfo>& checkpoints) {
  std::sort(checkpoints.begin(), checkpoints.end(), [](const CheckpointInfo& a, const CheckpointInfo& b) {
    return std::tie(a.step, a.created, a.path) < std::tie(b.step, b.created, b.path);
  });
}

std::optional<Error> lasting_failure(FileSystem& files, const std::filesystem::path& checkpoint,
                                     const std::function<Status()>& look) {
  std::optional<Error> before;
  for (int n = 0; n < kMaxLooks; ++n) {
    const Status status = look();
    if (status || files.stat(checkpoint).code() == ErrorCode::kNotFound) return std::nullopt;
    if (before && before->message == status.error().message) return before;
    before = status.error();
  }
  return before;
}

namespace {

// `changed`: one that was there has gone since, and what came in its place may not have been seen.
Result<Listing> scan_once(FileSystem& files, const std::filesystem::path& dir, bool& changed) {
  const auto entries = files.list(dir);
  if (!entries) return entries.error();
  Listing listing;
  Keep rule;
  Nanoseconds newest{-1};
  for (const FileInfo& entry : *entries) {
    if (!entry.is_directory || !entry.name.starts_with(kStepPrefix)) continue;
    const auto path = dir / entry.name;
    std::optional<Manifest> manifest;
    const auto failure = lasting_failure(files, path, [&]() -> Status {
      auto read = read_manifest(files, path);
      if (!read) return read.error();
      manifest = *std::move(read);
      return {};
    });
    if (failure) listing.damaged.push_back({step_in_name(entry.name), path, *failure});
    if (!failure && !manifest) changed = true;
    if (!manifest) continue;
    listing.checkpoints.push_back(describe(*manifest, path));
    if (manifest->created > newest) {
      newest = manifest->created;
      rule = manifest->keep;
      listing.since = manifest->since;
    }
  }
  sort_by_step(listing.checkpoints);
  set_pointers(listing, rule);
  return listing;
}

}  // namespace

Result<Listing> scan(FileSystem& files, const std::filesystem::path& dir) {
  for (int looks = 1;; ++looks) {
    bool changed = false;
    auto listing = scan_once(files, dir, changed);
    if (!listing || !changed || looks == kMaxLooks) return listing;
  }
}

std::optional<std::size_t> best_of(const std::vector<CheckpointInfo>& checkpoints, const Keep& keep) {
  std::optional<std::size_t> best;
  double record = 0;
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    const auto value = metric(checkpoints[i], keep.best_metric);
    if (!value || !checkpoints[i].exact) continue;
    const bool better = keep.better == Better::kHigher ? *value > record : *value < record;
    if (best && !better) continue;
    best = i;
    record = *value;
  }
  return best;
}

std::vector<std::filesystem::path> expired(const std::vector<CheckpointInfo>& checkpoints, const Keep& keep,
                                           Nanoseconds since) {
  if (keep.last == 0) return {};
  std::set<std::size_t> kept;
  keep_last(checkpoints, keep.last, kept);
  if (keep.every_steps > 0) {
    keep_first_of_each(checkpoints, kept, [&](const CheckpointInfo& info) {
      const Step period = info.step / keep.every_steps;
      return static_cast<double>(period);
    });
  }
  if (keep.every.count() > 0) {
    keep_first_of_each(checkpoints, kept, [&](const CheckpointInfo& info) {
      return (static_cast<double>(info.created.count()) - static_cast<double>(since.count())) /
             static_cast<double>(keep.every.count());
    });
  }
  if (keep.every_epochs > 0) {
    keep_first_of_each(checkpoints, kept, [&](const CheckpointInfo& info) {
      return metric(info, "epoch").value_or(0) / static_cast<double>(keep.every_epochs);
    });
  }
  if (const auto best = best_of(checkpoints, keep)) kept.insert(*best);
  std::vector<std::filesystem::path> gone;
  for (std::size_t i = 0; i < checkpoints.size(); ++i) {
    if (checkpoints[i].pin.empty() && !kept.contains(i)) gone.push_back(checkpoints[i].path);
  }
  return gone;
}

}  // namespace stoker::save
