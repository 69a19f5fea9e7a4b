// manifest.json: what a checkpoint is, written last. docs/formats/store.md has the rule for "this manifest is valid".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "save/store/safetensors.h"
#include "stoker/base/clock.h"
#include "stoker/base/hash.h"
#include "stoker/base/json.h"
#include "stoker/base/status.h"
#include "stoker/save/store.h"

namespace stoker::save {

constexpr std::string_view kManifestName = "manifest.json";
constexpr std::size_t kMaxManifestBytes = std::size_t{64} << 20;

// One file of tensors, named after the step that wrote it. A later step that uses it has it under a hard link.
struct Part {
  std::string file;
  std::uint64_t size_bytes = 0;
  std::uint64_t header_bytes = 0;
  std::string header_hash;
};

struct StoredTensor {
  TensorEntry entry;  // offset within the part's file
  std::size_t part = 0;
  std::string hash;
};

struct Manifest {
  Step step = 0;
  std::string pin;
  bool exact = true;
  Nanoseconds created{};
  Metrics metrics;
  Keep keep;            // the rule in force when it was written
  Nanoseconds since{};  // when the store was first opened: Keep::every counts from here; 0: not known
  std::vector<Part> parts;
  std::vector<StoredTensor> tensors;
  Json state;
};

// The bytes of the file. Errors: kBadInput when they would be more than kMaxManifestBytes.
Result<std::string> encode(const Manifest& manifest);

// Errors: kCorrupt: the hash does not match, a member is missing or of another type, a part's name leaves the
// directory, a tensor's range leaves its part or overlaps another; kUnsupported: of a newer format.
Result<Manifest> decode(std::string_view bytes);

// Letters, digits, '_' and '-', at most 64.
bool valid_pin(std::string_view pin);
// "step-4200", "step-4200-emergency".
std::string directory_name(Step step, std::string_view pin);
// "part-4200.safetensors", "part-4200-emergency.safetensors".
std::string part_name(Step step, std::string_view pin);

}  // namespace stoker::save
