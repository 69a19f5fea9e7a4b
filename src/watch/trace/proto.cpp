#include "watch/trace/proto.h"

namespace stoker::watch::proto {

bool Reader::raw(std::size_t& at, std::uint64_t& value) const {
  value = 0;
  for (unsigned shift = 0; shift < 64 && at < bytes_.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes_[at++]);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool Reader::fixed(std::size_t& at, std::size_t size, std::uint64_t& value) const {
  if (bytes_.size() - at < size) return false;
  value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::uint64_t{static_cast<unsigned char>(bytes_[at + i])} << (8 * i);
  at += size;
  return true;
}

bool Reader::body(std::size_t& at, Field& field) const {
  switch (field.wire) {
    case Wire::kVarint:
      return raw(at, field.value);
    case Wire::kFixed64:
      return fixed(at, 8, field.value);
    case Wire::kFixed32:
      return fixed(at, 4, field.value);
    case Wire::kBytes: {
      std::uint64_t size = 0;
      if (!raw(at, size) || size > bytes_.size() - at) return false;
      field.text = bytes_.substr(at, size);
      at += size;
      return true;
    }
  }
  return false;  // a group, or no wire type at all
}

bool Reader::next(Field& field) {
  if (failed_ || offset_ == bytes_.size()) return false;
  std::size_t at = offset_;
  std::uint64_t tag = 0;
  field = Field{};
  failed_ = !raw(at, tag) || tag >> 3 == 0 || tag >> 3 > (1U << 29) - 1;
  if (failed_) return false;
  field.number = static_cast<std::uint32_t>(tag >> 3);
  field.wire = static_cast<Wire>(tag & 7);
  failed_ = !body(at, field);
  if (failed_) return false;
  offset_ = at;
  return true;
}

}  // namespace stoker::watch::proto
