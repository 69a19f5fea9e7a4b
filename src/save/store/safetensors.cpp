#include "save/store/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "save/store/errors.h"
#include "stoker/base/json.h"
#include "stoker/base/text.h"

namespace stoker::save {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::uint64_t kMaxTensorBytes = std::uint64_t{1} << 63;

constexpr auto kDtypes = std::to_array<std::pair<std::string_view, std::uint64_t>>({
    {"F64", 8},     {"I64", 8},     {"U64", 8},     {"C64", 8},         {"F32", 4},         {"I32", 4}, {"U32", 4},
    {"F16", 2},     {"BF16", 2},    {"I16", 2},     {"U16", 2},         {"I8", 1},          {"U8", 1},  {"BOOL", 1},
    {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"F8_E4M3FNUZ", 1}, {"F8_E5M2FNUZ", 1},
});

bool plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

void append_string(std::string& out, const std::string& text) {
  out += plain(text) ? fmt::format("\"{}\"", text) : Json(text).dump();
}

void append_entry(std::string& out, const TensorEntry& entry, std::uint64_t begin) {
  append_string(out, entry.name);
  fmt::format_to(std::back_inserter(out), R"(:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", entry.dtype,
                 fmt::join(entry.shape, ","), begin, begin + entry.size_bytes);
}

Result<std::uint64_t> natural(const Json& value, const std::string& what) {
  if (!value.is_int() || value.as_int() < 0) return corrupt(what + " is not a whole number ≥ 0");
  return static_cast<std::uint64_t>(value.as_int());
}

Result<TensorEntry> parse_entry(const std::string& name, const Json& value, std::uint64_t data_start) {
  const std::string who = "tensor " + printable(name);
  TensorEntry entry;
  entry.name = name;
  entry.dtype = value["dtype"].as_string();
  for (const Json& extent : value["shape"].items()) {
    const auto number = natural(extent, who + ": an extent");
    if (!number) return number.error();
    entry.shape.push_back(*number);
  }
  const auto& offsets = value["data_offsets"].items();
  if (offsets.size() != 2) return corrupt(who + " has no data_offsets");
  const auto begin = natural(offsets[0], who + ": its begin");
  const auto end = natural(offsets[1], who + ": its end");
  if (!begin || !end || *end < *begin) return corrupt(who + " has a range that is none");
  const auto size = tensor_bytes(entry.dtype, entry.shape);
  if (!size) return corrupt(size.error().message);
  if (*size != *end - *begin) return corrupt(fmt::format("{} needs {} bytes and has {}", who, *size, *end - *begin));
  entry.offset = data_start + *begin;
  entry.size_bytes = *size;
  return entry;
}

Status check_ranges(std::vector<TensorEntry> entries, std::uint64_t data_start, std::uint64_t file_bytes) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.offset, a.size_bytes) < std::pair(b.offset, b.size_bytes);
  });
  std::uint64_t at = data_start;
  for (const TensorEntry& entry : entries) {
    if (entry.offset != at) {
      return corrupt(fmt::format("tensor {} starts at {}, {} where {} is next", printable(entry.name), entry.offset,
                                 entry.offset < at ? "inside another," : "after a gap,", at));
    }
    at += entry.size_bytes;
    if (at > file_bytes)
      return corrupt(fmt::format("tensor {} ends at {}, the file at {}", printable(entry.name), at, file_bytes));
  }
  if (at != file_bytes) return corrupt(fmt::format("tensors end at {}, the file at {}", at, file_bytes));
  return {};
}

}  // namespace

std::optional<std::uint64_t> element_bytes(std::string_view dtype) {
  for (const auto& [known, bytes] : kDtypes) {
    if (known == dtype) return bytes;
  }
  return std::nullopt;
}

Result<std::uint64_t> tensor_bytes(std::string_view dtype, std::span<const std::uint64_t> shape) {
  const auto element = element_bytes(dtype);
  if (!element)
    return Error{ErrorCode::kBadInput, fmt::format("dtype '{}' is not one that is stored", printable(dtype))};
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return std::uint64_t{0};
  std::uint64_t total = *element;
  for (const std::uint64_t extent : shape) {
    if (extent > kMaxTensorBytes / total) return corrupt("a shape of more than 2^63 bytes");
    total *= extent;
  }
  return total;
}

std::string make_header(std::vector<TensorEntry>& entries) {
  std::string out(kLengthBytes, '\0');
  out += R"({"__metadata__":{"format":"pt"})";
  std::uint64_t at = 0;
  for (const TensorEntry& entry : entries) {
    out += ',';
    append_entry(out, entry, at);
    at += entry.size_bytes;
  }
  out += '}';
  out.resize((out.size() + kDataAlignment - 1) / kDataAlignment * kDataAlignment, ' ');
  std::uint64_t offset = out.size();
  for (TensorEntry& entry : entries) {
    entry.offset = offset;
    offset += entry.size_bytes;
  }
  const std::uint64_t length = out.size() - kLengthBytes;
  for (std::size_t i = 0; i < kLengthBytes; ++i) out[i] = static_cast<char>(length >> (8 * i) & 0xFF);
  return out;
}

Result<std::uint64_t> header_bytes(std::string_view first_eight, std::uint64_t file_bytes) {
  if (first_eight.size() < kLengthBytes || file_bytes < kLengthBytes)
    return corrupt("too short to be a safetensors file");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= std::uint64_t{static_cast<unsigned char>(first_eight[i])} << (8 * i);
  if (length > file_bytes - kLengthBytes || length > kMaxHeaderBytes)
    return corrupt(fmt::format("a header of {} bytes in a file of {}", length, file_bytes));
  return length + kLengthBytes;
}

Result<std::vector<TensorEntry>> parse_header(std::string_view bytes, std::uint64_t file_bytes) {
  const auto data_start = header_bytes(bytes, file_bytes);
  if (!data_start) return data_start.error();
  if (bytes.size() < *data_start) return corrupt("the header is cut short");
  const auto parsed = Json::parse(bytes.substr(kLengthBytes, *data_start - kLengthBytes), kMaxHeaderBytes);
  if (!parsed) return corrupt("the header is " + parsed.error().message);
  if (!parsed->is_object()) return corrupt("the header is not a JSON object");
  std::vector<TensorEntry> entries;
  for (const auto& [name, value] : parsed->members()) {
    if (name == "__metadata__") continue;
    auto entry = parse_entry(name, value, *data_start);
    if (!entry) return entry.error();
    entries.push_back(*std::move(entry));
  }
  STOKER_TRY(check_ranges(entries, *data_start, file_bytes));
  return entries;
}

}  // namespace stoker::save
