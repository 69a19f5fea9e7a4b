#include "save/store/manifest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "save/store/errors.h"
#include "stoker/base/text.h"

namespace stoker::save {
namespace {

constexpr std::string_view kSchema = "stoker.checkpoint.v1";
constexpr std::string_view kHashMember = ",\"hash\":\"";
constexpr std::size_t kHashDigits = 32;
constexpr std::string_view kEnd = "\"}\n";

// JSON has no word for them.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double number(const Json& value) {
  const std::string& word = value.as_string();
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  return value.as_double(std::numeric_limits<double>::quiet_NaN());
}

Json encode_metrics(const Metrics& metrics) {
  Json object = Json::object();
  for (const auto& [name, value] : metrics) object.set(name, number(value));
  return object;
}

Json encode_keep(const Keep& keep) {
  return Json::object({{"last", keep.last},
                       {"every_steps", keep.every_steps},
                       {"every_ns", keep.every.count()},
                       {"every_epochs", keep.every_epochs},
                       {"best_metric", keep.best_metric},
                       {"better", keep.better == Better::kHigher ? "higher" : "lower"}});
}

Json encode_part(const Part& part) {
  return Json::object({{"file", part.file},
                       {"size_bytes", part.size_bytes},
                       {"header_bytes", part.header_bytes},
                       {"header_hash", part.header_hash}});
}

Json encode_tensor(const StoredTensor& tensor) {
  Json shape = Json::array();
  for (const std::uint64_t extent : tensor.entry.shape) shape.push(extent);
  return Json::object({{"name", tensor.entry.name},
                       {"dtype", tensor.entry.dtype},
                       {"shape", std::move(shape)},
                       {"part", tensor.part},
                       {"offset", tensor.entry.offset},
                       {"size_bytes", tensor.entry.size_bytes},
                       {"hash", tensor.hash}});
}

// Reads members and remembers the first one that is missing or of another type.
class Reader {
 public:
  std::uint64_t natural(const Json& object, const char* key) {
    const Json& value = object[key];
    if (!value.is_int() || value.as_int() < 0) fail(key, "a whole number ≥ 0");
    return value.is_int() ? static_cast<std::uint64_t>(std::max<std::int64_t>(0, value.as_int())) : 0;
  }
  const std::string& text(const Json& object, const char* key) {
    if (!object[key].is_string()) fail(key, "a string");
    return object[key].as_string();
  }
  const Json::Array& array(const Json& object, const char* key) {
    if (!object[key].is_array()) fail(key, "an array");
    return object[key].items();
  }
  std::string hash(const Json& object, const char* key) {
    const std::string& digits = text(object, key);
    if (digits.size() != kHashDigits) fail(key, "a hash of 32 digits");
    return digits;
  }
  Status status() const { return problem_.empty() ? Status() : Status(corrupt(problem_)); }

 private:
  void fail(const char* key, const char* what) {
    if (problem_.empty()) problem_ = fmt::format("its member '{}' is not {}", key, what);
  }
  std::string problem_;
};

bool safe_part_name(std::string_view name) {
  return name.starts_with("part-") && name.ends_with(".safetensors") && name.size() <= 128 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == name.npos;
}

Status read_parts(const Json& root, Reader& reader, Manifest& manifest) {
  for (const Json& item : reader.array(root, "parts")) {
    Part part;
    part.file = reader.text(item, "file");
    part.size_bytes = reader.natural(item, "size_bytes");
    part.header_bytes = reader.natural(item, "header_bytes");
    part.header_hash = reader.hash(item, "header_hash");
    STOKER_TRY(reader.status());
    if (!safe_part_name(part.file)) return corrupt(fmt::format("'{}' is no name of a part", printable(part.file)));
    if (part.header_bytes > part.size_bytes) return corrupt(part.file + " has a header longer than itself");
    manifest.parts.push_back(std::move(part));
  }
  return {};
}

Result<StoredTensor> read_tensor(const Json& item, Reader& reader, const std::vector<Part>& parts) {
  StoredTensor tensor;
  tensor.entry.name = reader.text(item, "name");
  tensor.entry.dtype = reader.text(item, "dtype");
  for (const Json& extent : reader.array(item, "shape")) {
    if (!extent.is_int() || extent.as_int() < 0) return corrupt("an extent is not a whole number ≥ 0");
    tensor.entry.shape.push_back(static_cast<std::uint64_t>(extent.as_int()));
  }
  tensor.part = reader.natural(item, "part");
  tensor.entry.offset = reader.natural(item, "offset");
  tensor.entry.size_bytes = reader.natural(item, "size_bytes");
  tensor.hash = reader.hash(item, "hash");
  STOKER_TRY(reader.status());
  const std::string who = "tensor " + printable(tensor.entry.name);
  const auto size = tensor_bytes(tensor.entry.dtype, tensor.entry.shape);
  if (!size) return corrupt(who + ": " + size.error().message);
  if (*size != tensor.entry.size_bytes) return corrupt(who + " has another size than its shape");
  if (tensor.part >= parts.size()) return corrupt(who + " names a part that is not there");
  const Part& part = parts[tensor.part];
  if (tensor.entry.offset < part.header_bytes || tensor.entry.offset > part.size_bytes ||
      tensor.entry.size_bytes > part.size_bytes - tensor.entry.offset) {
    return corrupt(fmt::format("{} lies outside {}", who, part.file));
  }
  return tensor;
}

Status read_tensors(const Json& root, Reader& reader, Manifest& manifest) {
  for (const Json& item : reader.array(root, "tensors")) {
    auto tensor = read_tensor(item, reader, manifest.parts);
    if (!tensor) return tensor.error();
    manifest.tensors.push_back(*std::move(tensor));
  }
  return reader.status();
}

// No name twice; no byte in two tensors, so that what is loaded is never more than the files hold.
Status check_tensors(const Manifest& manifest) {
  std::set<std::string_view> names;
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : manifest.tensors) {
    if (!names.insert(tensor.entry.name).second)
      return corrupt(fmt::format("tensor {} is there twice", printable(tensor.entry.name)));
    if (tensor.entry.size_bytes != 0) order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return std::pair(a->part, a->entry.offset) < std::pair(b->part, b->entry.offset);
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const StoredTensor& before = *order[i - 1];
    if (before.part == order[i]->part && before.entry.offset + before.entry.size_bytes > order[i]->entry.offset) {
      return corrupt(
          fmt::format("tensors {} and {} overlap", printable(before.entry.name), printable(order[i]->entry.name)));
    }
  }
  return {};
}

Status check_hash(std::string_view bytes) {
  const std::size_t tail = kHashDigits + kEnd.size();
  if (bytes.size() < tail + kHashMember.size() || !bytes.ends_with(kEnd) ||
      !bytes.substr(0, bytes.size() - tail).ends_with(kHashMember)) {
    return corrupt("it does not end in its hash: cut short, or not a manifest");
  }
  const std::string_view hashed = bytes.substr(0, bytes.size() - tail);
  const std::string_view stored = bytes.substr(hashed.size(), kHashDigits);
  const std::string computed = hash128(hashed).hex();
  if (stored == computed) return {};
  return corrupt(fmt::format("its hash does not match: stored {}, computed {}", printable(stored), computed));
}

}  // namespace

Result<std::string> encode(const Manifest& manifest) {
  Json parts = Json::array();
  for (const Part& part : manifest.parts) parts.push(encode_part(part));
  Json tensors = Json::array();
  for (const StoredTensor& tensor : manifest.tensors) tensors.push(encode_tensor(tensor));
  const Json root = Json::object({{"schema", kSchema},
                                  {"step", manifest.step},
                                  {"pin", manifest.pin},
                                  {"exact", manifest.exact},
                                  {"created_utc", utc_iso(manifest.created)},
                                  {"created_ns", manifest.created.count()},
                                  {"stoker", STOKER_VERSION},
                                  {"metrics", encode_metrics(manifest.metrics)},
                                  {"keep", encode_keep(manifest.keep)},
                                  {"since_ns", manifest.since.count()},
                                  {"parts", std::move(parts)},
                                  {"tensors", std::move(tensors)},
                                  {"state", manifest.state}});
  std::string bytes = root.dump();
  bytes.pop_back();  // the closing brace, which comes after the hash
  bytes += kHashMember;
  bytes += hash128(bytes).hex();
  bytes += kEnd;
  if (bytes.size() <= kMaxManifestBytes) return bytes;
  return Error{
      ErrorCode::kBadInput,
      fmt::format("the state beside the tensors takes {} bytes; at most {} fit", bytes.size(), kMaxManifestBytes),
      "keep long lists of numbers in a tensor or an array"};
}

Result<Manifest> decode(std::string_view bytes) {
  STOKER_TRY(check_hash(bytes));
  const auto root = Json::parse(bytes, kMaxManifestBytes);
  if (!root) return corrupt(root.error().message);
  const std::string& schema = (*root)["schema"].as_string();
  if (schema != kSchema) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("its format is '{}', and this Stoker reads {}", printable(schema), kSchema),
                 "a newer Stoker may read it"};
  }
  Reader reader;
  Manifest manifest;
  manifest.step = static_cast<Step>(reader.natural(*root, "step"));
  manifest.pin = reader.text(*root, "pin");
  manifest.exact = (*root)["exact"].as_bool(true);
  manifest.created = Nanoseconds((*root)["created_ns"].as_int());
  for (const auto& [name, value] : (*root)["metrics"].members()) manifest.metrics.emplace_back(name, number(value));
  const Json& keep = (*root)["keep"];
  manifest.keep.last = static_cast<std::size_t>(std::max<std::int64_t>(0, keep["last"].as_int()));
  manifest.keep.every_steps = keep["every_steps"].as_int();
  manifest.keep.every = Nanoseconds(keep["every_ns"].as_int());
  manifest.keep.every_epochs = keep["every_epochs"].as_int();
  manifest.since = Nanoseconds((*root)["since_ns"].as_int());
  manifest.keep.best_metric = keep["best_metric"].as_string();
  manifest.keep.better = keep["better"].as_string() == "lower" ? Better::kLower : Better::kHigher;
  STOKER_TRY(read_parts(*root, reader, manifest));
  STOKER_TRY(read_tensors(*root, reader, manifest));
  STOKER_TRY(check_tensors(manifest));
  if (!manifest.pin.empty() && !valid_pin(manifest.pin)) return corrupt("its pin is no name");
  manifest.state = (*root)["state"];
  return manifest;
}

bool valid_pin(std::string_view pin) {
  return !pin.empty() && pin.size() <= 64 &&
         pin.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == pin.npos;
}

std::string directory_name(Step step, std::string_view pin) {
  return pin.empty() ? fmt::format("step-{}", step) : fmt::format("step-{}-{}", step, pin);
}

std::string part_name(Step step, std::string_view pin) {
  return pin.empty() ? fmt::format("part-{}.safetensors", step) : fmt::format("part-{}-{}.safetensors", step, pin);
}

}  // namespace stoker::save
