// As much of Protobuf's wire format as a Perfetto trace needs, by hand: a protobuf library in somebody else's process
// clashes with TensorFlow's, and this is smaller than its generated code.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stoker::watch::proto {

enum class Wire : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Appends fields to a string. A nested message is built in a Writer of its own, then added as bytes.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void varint(std::uint32_t field, std::uint64_t value) {
    tag(field, Wire::kVarint);
    raw(value);
  }
  void fixed64(std::uint32_t field, double value) {
    tag(field, Wire::kFixed64);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (unsigned shift = 0; shift < 64; shift += 8) out_ += static_cast<char>(bits >> shift);
  }
  void bytes(std::uint32_t field, std::string_view value) {
    tag(field, Wire::kBytes);
    raw(value.size());
    out_ += value;
  }

 private:
  void tag(std::uint32_t field, Wire wire) { raw(std::uint64_t{field} << 3 | static_cast<std::uint32_t>(wire)); }
  void raw(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }

  std::string& out_;
};

// One field as it stands in the bytes; `text` is a view into them.
struct Field {
  std::uint32_t number = 0;
  Wire wire = Wire::kVarint;
  std::uint64_t value = 0;  // of a varint or fixed field
  std::string_view text;    // of a length-delimited one

  double as_double() const { return std::bit_cast<double>(value); }
};

// Walks the fields of a message that nobody vouches for: it never reads past the end and never allocates.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  // False at the end and at the first byte that is no field; failed() tells the two apart.
  bool next(Field& field);
  bool failed() const { return failed_; }
  // Bytes taken so far, all of them whole fields.
  std::size_t offset() const { return offset_; }

 private:
  bool raw(std::size_t& at, std::uint64_t& value) const;
  bool fixed(std::size_t& at, std::size_t size, std::uint64_t& value) const;
  bool body(std::size_t& at, Field& field) const;

  std::string_view bytes_;
  std::size_t offset_ = 0;
  bool failed_ = false;
};

}  // namespace stoker::watch::proto
