#include "save/store/plan.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "save/store/staging.h"
#include "stoker/base/hash.h"
#include "stoker/base/text.h"

namespace stoker::save {
namespace {

constexpr std::string_view kReservedName = "__metadata__";  // safetensors' own

// Per tensor what an earlier part holds of it, or null.
using Unchanged = std::vector<const History::Known*>;

Unchanged find_unchanged(std::span<const TensorView> tensors, const History& history, int threads) {
  Unchanged found(tensors.size(), nullptr);
  if (history.empty()) return found;
  parallel_for(tensors.size(), threads, [&](std::size_t i) {
    const auto* known = history.candidate(tensors[i]);
    if (known != nullptr && hash128(tensors[i].bytes).hex() == known->hash) found[i] = known;
  });
  return found;
}

// A part of which less than half is still in use is let go: its tensors are written again.
void drop_thin_parts(Unchanged& found) {
  std::map<std::string, std::uint64_t> used;
  for (const auto* known : found) {
    if (known != nullptr) used[known->part.file] += known->entry.size_bytes;
  }
  for (const auto*& known : found) {
    if (known == nullptr) continue;
    const std::uint64_t data = known->part.size_bytes - known->part.header_bytes;
    if (used[known->part.file] < data - data / 2) known = nullptr;
  }
}

std::size_t share(Plan& plan, const History::Known& known, const std::filesystem::path& checkpoint) {
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    if (plan.parts[i].file == known.part.file) return i;
  }
  plan.parts.push_back(known.part);
  plan.shared.push_back({checkpoint / known.part.file, plan.parts.size() - 1});
  return plan.parts.size() - 1;
}

void lay_out_new_part(Plan& plan, std::vector<std::size_t> order, const std::string& file) {
  // Wide elements first: then each tensor is aligned to its elements without gaps, which the format does not allow.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return element_bytes(plan.tensors[a].entry.dtype) > element_bytes(plan.tensors[b].entry.dtype);
  });
  std::vector<TensorEntry> entries;
  entries.reserve(order.size());
  for (const std::size_t i : order) entries.push_back(plan.tensors[i].entry);
  plan.header = make_header(entries);
  plan.part_bytes = plan.header.size();
  for (std::size_t k = 0; k < order.size(); ++k) {
    StoredTensor& tensor = plan.tensors[order[k]];
    tensor.entry.offset = entries[k].offset;
    tensor.part = plan.parts.size();
    plan.copied.push_back({order[k], tensor.entry.offset});
    plan.part_bytes += tensor.entry.size_bytes;
  }
  plan.parts.push_back({file, plan.part_bytes, plan.header.size(), ""});
}

}  // namespace

const History::Known* History::candidate(const TensorView& tensor) const {
  const auto it = known_.find(tensor.name);
  if (it == known_.end()) return nullptr;
  const Known& known = it->second;
  const bool same_kind = known.entry.dtype == tensor.dtype && known.entry.shape == tensor.shape;
  return same_kind && !known.moves ? &known : nullptr;
}

void History::remember(const Manifest& manifest, const std::filesystem::path& checkpoint) {
  std::map<std::string, Known, std::less<>> now;
  for (const StoredTensor& tensor : manifest.tensors) {
    const auto before = known_.find(tensor.entry.name);
    const bool moves = before != known_.end() && before->second.hash != tensor.hash;
    now.emplace(tensor.entry.name, Known{tensor.entry, tensor.hash, manifest.parts[tensor.part], moves});
  }
  known_ = std::move(now);
  checkpoint_ = checkpoint;
}

void History::forget() { known_.clear(); }

Status check_input(std::span<const TensorView> tensors) {
  std::unordered_set<std::string_view> names;
  for (const TensorView& tensor : tensors) {
    const std::string who = "tensor '" + printable(tensor.name) + "'";
    if (tensor.name.empty() || tensor.name == kReservedName)
      return Error{ErrorCode::kBadInput, who + " has a name that safetensors cannot store"};
    if (!names.insert(tensor.name).second) return Error{ErrorCode::kBadInput, who + " is there twice"};
    const auto size = tensor_bytes(tensor.dtype, tensor.shape);
    if (!size) return Error{ErrorCode::kBadInput, who + ": " + size.error().message};
    if (*size != tensor.bytes.size()) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("{} has {} bytes; its shape takes {}", who, tensor.bytes.size(), *size)};
    }
  }
  return {};
}

Plan make_plan(std::span<const TensorView> tensors, const History& history, const std::string& new_part, int threads) {
  Unchanged unchanged = find_unchanged(tensors, history, threads);
  drop_thin_parts(unchanged);
  Plan plan;
  std::vector<std::size_t> fresh;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    StoredTensor tensor;
    tensor.entry = {tensors[i].name, tensors[i].dtype, tensors[i].shape, 0, tensors[i].bytes.size()};
    if (const auto* known = unchanged[i]; known != nullptr) {
      tensor.entry.offset = known->entry.offset;
      tensor.hash = known->hash;
      tensor.part = share(plan, *known, history.checkpoint());
    } else {
      fresh.push_back(i);
    }
    plan.tensors.push_back(std::move(tensor));
  }
  if (!fresh.empty()) lay_out_new_part(plan, std::move(fresh), new_part);
  return plan;
}

}  // namespace stoker::save
