// The safetensors file: u64 little-endian header length, a JSON header padded with spaces, then the tensors' bytes
// without gaps. docs/formats/store.md says what is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/status.h"

namespace stoker::save {

// Data starts at a multiple of this, so that it can be read with O_DIRECT.
constexpr std::uint64_t kDataAlignment = 4096;

struct TensorEntry {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t offset = 0;  // from the start of the file
  std::uint64_t size_bytes = 0;
};

// Bytes of one element, or nothing for a dtype that safetensors does not have or that is smaller than a byte.
std::optional<std::uint64_t> element_bytes(std::string_view dtype);

// Bytes that `shape` of `dtype` takes. Errors: kBadInput (unknown dtype), kCorrupt (beyond 2^63).
Result<std::uint64_t> tensor_bytes(std::string_view dtype, std::span<const std::uint64_t> shape);

// The length and the header for `entries`, whose sizes are set and whose offsets this sets: in the order given, which
// must have wide elements first for each to be aligned to its own size.
std::string make_header(std::vector<TensorEntry>& entries);

// Reads what make_header() or another writer made; `bytes` hold the file's beginning, at least the whole header.
// Errors: kCorrupt: a header longer than the file, not JSON, sizes that do not fit dtype and shape, ranges that
// overlap, leave a gap or end beyond `file_bytes`.
Result<std::vector<TensorEntry>> parse_header(std::string_view bytes, std::uint64_t file_bytes);

// Bytes of length and header together. Errors: kCorrupt when that is beyond the file or the limit of 100 MB.
Result<std::uint64_t> header_bytes(std::string_view first_eight, std::uint64_t file_bytes);

}  // namespace stoker::save
