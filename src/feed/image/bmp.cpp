// BMP, read here: raw rows of 1 to 32 bits a pixel, bit fields as Pillow knows them, and run-length coding.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "feed/image/codec.h"

namespace stoker::feed {
namespace {

constexpr std::size_t kFileHeader = 14;
enum Compression : std::uint32_t { kRaw = 0, kRle8 = 1, kRle4 = 2, kBitFields = 3 };

struct Layout {
  int bits = 0;
  std::uint32_t compression = kRaw;
  bool bottom_up = true;
  std::size_t pixels = 0;  // offset of the pixel data
  Bytes palette;           // blue, green, red and, in entry_bytes 4, one more
  std::size_t entry_bytes = 4;
  std::array<int, 3> byte_of = {2, 1, 0};  // 24 and 32 bits: where red, green and blue lie
  bool green_6 = false;                    // 16 bits: 5-6-5 and not 5-5-5
};

// Byte offsets of red, green and blue for the masks that Pillow takes with 32 bits a pixel.
std::optional<std::array<int, 3>> byte_layout(const std::array<std::uint32_t, 4>& masks) {
  struct Known {
    std::array<std::uint32_t, 4> masks;
    std::array<int, 3> bytes;
  };
  static constexpr std::array<Known, 8> kKnown = {{
      {{0xff0000, 0xff00, 0xff, 0}, {2, 1, 0}},
      {{0xff000000, 0xff0000, 0xff00, 0}, {3, 2, 1}},
      {{0xff000000, 0xff00, 0xff, 0}, {3, 1, 0}},
      {{0xff000000, 0xff0000, 0xff00, 0xff}, {3, 2, 1}},
      {{0xff, 0xff00, 0xff0000, 0xff000000}, {0, 1, 2}},
      {{0xff0000, 0xff00, 0xff, 0xff000000}, {2, 1, 0}},
      {{0xff000000, 0xff00, 0xff, 0xff0000}, {3, 1, 0}},
      {{0, 0, 0, 0}, {2, 1, 0}},
  }};
  for (const Known& known : kKnown)
    if (known.masks == masks) return known.bytes;
  return std::nullopt;
}

class BmpHeaderReader {
 public:
  explicit BmpHeaderReader(Bytes file) : file_(file) {}

  Status read(ImageInfo& info, Layout& layout) {
    if (file_.size() < kFileHeader + 12) return corrupt("the BMP is cut in its header");
    header_size_ = le32(&file_[kFileHeader]);
    header_ = slice(file_, kFileHeader, header_size_);
    if (header_.size() < header_size_) return corrupt("the BMP is cut in its header");
    STOKER_TRY(header_size_ == 12 ? old_header(info, layout) : new_header(info, layout));
    info.format = ImageFormat::kBmp;
    info.channels = 3;
    if (layout.bits != 1 && layout.bits != 4 && layout.bits != 8 && layout.bits != 16 && layout.bits != 24 &&
        layout.bits != 32)
      return unsupported("a BMP of " + std::to_string(layout.bits) + " bits a pixel");
    if (info.width <= 0 || info.height <= 0)
      return corrupt("the BMP says it is " + std::to_string(info.width) + "x" + std::to_string(info.height) +
                     " pixels");
    return place_palette(layout);
  }

 private:
  Status old_header(ImageInfo& info, Layout& layout) {
    info.width = le16(&header_[4]);
    info.height = le16(&header_[6]);
    layout.bits = le16(&header_[10]);
    layout.entry_bytes = 3;
    return {};
  }

  Status new_header(ImageInfo& info, Layout& layout) {
    switch (header_size_) {
      case 40:
      case 52:
      case 56:
      case 64:
      case 108:
      case 124:
        break;
      default:
        return unsupported("a BMP header of " + std::to_string(header_size_) + " bytes");
    }
    layout.bottom_up = header_[11] != 0xff;
    info.width = static_cast<int>(le32(&header_[4]));
    const std::uint32_t height = le32(&header_[8]);
    info.height = static_cast<int>(layout.bottom_up ? height : 0u - height);
    layout.bits = le16(&header_[14]);
    layout.compression = le32(&header_[16]);
    colors_ = le32(&header_[32]);
    if (layout.compression > kBitFields)
      return unsupported("a BMP of compression " + std::to_string(layout.compression));
    return layout.compression == kBitFields ? bit_fields(layout) : Status();
  }

  Status bit_fields(Layout& layout) {
    const bool outside = header_size_ == 40;  // the three masks follow the header
    if (outside) masks_bytes_ = 12;
    const Bytes at = slice(file_, kFileHeader + 40, 16);
    if (at.size() < (header_size_ >= 56 ? 16u : 12u)) return corrupt("the BMP is cut in its header");
    std::array<std::uint32_t, 4> masks{};
    for (std::size_t i = 0; i < (header_size_ >= 56 ? 4u : 3u); ++i) masks[i] = le32(&at[i * 4]);
    const std::array<std::uint32_t, 3> rgb = {masks[0], masks[1], masks[2]};
    constexpr std::array<std::uint32_t, 3> k565 = {0xf800, 0x7e0, 0x1f};
    constexpr std::array<std::uint32_t, 3> k555 = {0x7c00, 0x3e0, 0x1f};
    constexpr std::array<std::uint32_t, 3> k888 = {0xff0000, 0xff00, 0xff};
    const auto bytes = byte_layout(masks);
    const bool known = layout.bits == 32   ? bytes.has_value()
                       : layout.bits == 24 ? rgb == k888
                                           : layout.bits == 16 && (rgb == k565 || rgb == k555);
    if (!known) return unsupported("a BMP with unusual bit fields");
    if (layout.bits == 32) layout.byte_of = *bytes;
    layout.green_6 = layout.bits == 16 && rgb == k565;
    return {};
  }

  Status place_palette(Layout& layout) {
    const std::size_t after_header = kFileHeader + header_size_ + masks_bytes_;
    layout.pixels = le32(&file_[10]);
    if (layout.bits > 8) {
      if (layout.pixels == 0) layout.pixels = after_header;
      return {};
    }
    const std::uint64_t colors = colors_ != 0 ? colors_ : 1u << layout.bits;
    if (colors > 65536) return corrupt("the BMP has a palette of " + std::to_string(colors) + " colours");
    layout.palette = slice(file_, after_header, colors * layout.entry_bytes);
    const bool too_early = layout.pixels == kFileHeader + header_size_;
    if (layout.pixels == 0 || too_early) layout.pixels = after_header + colors * layout.entry_bytes;
    return {};
  }

  const Bytes file_;
  Bytes header_;
  std::uint32_t header_size_ = 0;
  std::uint32_t colors_ = 0;
  std::size_t masks_bytes_ = 0;
};

// Run-length data to palette indices, in file order of rows. Overlong runs are cut at the row's end, as Pillow does.
class RunLengths {
 public:
  RunLengths(Bytes data, std::size_t start, bool nibbles, int width, int height)
      : data_(data),
        at_(start),
        nibbles_(nibbles),
        width_(static_cast<std::size_t>(width)),
        wanted_(width_ * static_cast<std::size_t>(height)) {}

  // False when the data end before the picture does.
  bool expand(std::vector<std::uint8_t>& out) {
    out.clear();
    out.reserve(wanted_);
    while (out.size() < wanted_ && at_ + 2 <= data_.size()) {
      const std::uint8_t count = data_[at_];
      const std::uint8_t value = data_[at_ + 1];
      at_ += 2;
      if (count != 0)
        run(out, count, value);
      else if (value == 1 || !escape(out, value))
        break;
    }
    return out.size() >= wanted_;
  }

 private:
  void run(std::vector<std::uint8_t>& out, std::size_t count, std::uint8_t value) {
    if (x_ + count > width_) count = width_ > x_ ? width_ - x_ : 0;
    for (std::size_t i = 0; i < count; ++i) out.push_back(!nibbles_ ? value : i % 2 == 0 ? value >> 4 : value & 15);
    x_ += count;
  }

  bool escape(std::vector<std::uint8_t>& out, std::uint8_t code) {
    if (code == 0) {
      out.resize((out.size() + width_ - 1) / width_ * width_);
      x_ = 0;
      return true;
    }
    if (code == 2) return move(out);
    const std::size_t count = std::min<std::size_t>(wanted_ - out.size(), code);
    const std::size_t bytes = nibbles_ ? (count + 1) / 2 : count;
    const Bytes literal = slice(data_, at_, bytes);
    for (std::size_t i = 0; i < (nibbles_ ? std::min(count, literal.size() * 2) : literal.size()); ++i)
      out.push_back(!nibbles_ ? literal[i] : i % 2 == 0 ? literal[i / 2] >> 4 : literal[i / 2] & 15);
    at_ += literal.size();
    if (literal.size() < bytes || out.size() == wanted_) return false;
    x_ += code;
    at_ += at_ % 2;  // words lie at even offsets of the file
    return true;
  }

  bool move(std::vector<std::uint8_t>& out) {
    if (at_ + 2 > data_.size()) return false;
    const std::size_t distance = data_[at_] + std::size_t{data_[at_ + 1]} * width_;
    at_ += 2;
    out.resize(std::min(wanted_, out.size() + distance));
    x_ = out.size() % width_;
    return true;
  }

  const Bytes data_;
  std::size_t at_;
  const bool nibbles_;
  const std::size_t width_;
  const std::size_t wanted_;
  std::size_t x_ = 0;
};

class BmpCodec final : public Codec {
 public:
  Result<ImageInfo> open(Bytes file) override {
    file_ = file;
    header_ = {};
    layout_ = {};
    STOKER_TRY(BmpHeaderReader(file).read(header_, layout_));
    return header_;
  }

  Status decode(const IntBox& box, RowSink& sink) override {
    row_.resize(row_bytes(box.width));
    if (layout_.compression == kRle8 || layout_.compression == kRle4) return run_lengths(box, sink);
    const std::size_t stride =
        (static_cast<std::size_t>(header_.width) * static_cast<std::size_t>(layout_.bits) + 31) / 32 * 4;
    // The last row may lack its padding.
    const std::size_t used = (static_cast<std::size_t>(header_.width) * static_cast<std::size_t>(layout_.bits) + 7) / 8;
    const std::size_t wanted = stride * static_cast<std::size_t>(header_.height - 1) + used;
    const Bytes pixels = slice(file_, layout_.pixels);
    if (pixels.size() < wanted)
      return corrupt("the BMP is cut short: " + std::to_string(pixels.size()) + " bytes of pixels where " +
                     std::to_string(wanted) + " are due");
    for (int y = 0; y < box.height; ++y) {
      const std::uint8_t* raw = pixels.data() + static_cast<std::size_t>(file_row(box.top + y)) * stride;
      for (int x = 0; x < box.width; ++x) put(raw, box.left + x, &row_[static_cast<std::size_t>(x) * kPixelBytes]);
      sink.rows(y, 1, row_.data(), row_.size());
    }
    return {};
  }

 private:
  int file_row(int y) const { return layout_.bottom_up ? header_.height - 1 - y : y; }

  Status run_lengths(const IntBox& box, RowSink& sink) {
    RunLengths data(file_, layout_.pixels, layout_.compression == kRle4, header_.width, header_.height);
    if (!data.expand(indices_)) return corrupt("the BMP is cut short: its run-length data end before the picture does");
    for (int y = 0; y < box.height; ++y) {
      const std::uint8_t* raw =
          indices_.data() + static_cast<std::size_t>(file_row(box.top + y)) * static_cast<std::size_t>(header_.width);
      for (int x = 0; x < box.width; ++x)
        put_palette(raw[box.left + x], &row_[static_cast<std::size_t>(x) * kPixelBytes]);
      sink.rows(y, 1, row_.data(), row_.size());
    }
    return {};
  }

  void put(const std::uint8_t* raw, int x, std::uint8_t* out) const {
    const int bits = layout_.bits;
    if (bits <= 8) {
      const int at = x * bits;
      return put_palette(raw[at / 8] >> (8 - bits - at % 8) & ((1 << bits) - 1), out);
    }
    const std::uint8_t* p = raw + static_cast<std::size_t>(x) * static_cast<std::size_t>(bits / 8);
    if (bits == 16) return put_16(le16(p), out);
    for (std::size_t c = 0; c < 3; ++c) out[c] = p[layout_.byte_of[c]];
  }

  void put_16(int pixel, std::uint8_t* out) const {
    const int green_max = layout_.green_6 ? 63 : 31;
    out[0] = static_cast<std::uint8_t>((pixel >> (layout_.green_6 ? 11 : 10) & 31) * 255 / 31);
    out[1] = static_cast<std::uint8_t>((pixel >> 5 & green_max) * 255 / green_max);
    out[2] = static_cast<std::uint8_t>((pixel & 31) * 255 / 31);
  }

  void put_palette(int index, std::uint8_t* out) const {
    const std::size_t at = static_cast<std::size_t>(index) * layout_.entry_bytes;
    const bool known = at + 3 <= layout_.palette.size();
    for (std::size_t c = 0; c < 3; ++c) out[c] = known ? layout_.palette[at + 2 - c] : 0;
  }

  Bytes file_;
  ImageInfo header_;
  Layout layout_;
  std::vector<std::uint8_t> row_;
  std::vector<std::uint8_t> indices_;
};

}  // namespace

std::unique_ptr<Codec> make_bmp_codec() { return std::make_unique<BmpCodec>(); }

}  // namespace stoker::feed
