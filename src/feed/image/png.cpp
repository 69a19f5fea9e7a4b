// PNG through libspng, to the bytes that Pillow's convert("RGB") gives: alpha and tRNS are dropped, 16-bit samples
// keep their high byte, grey of fewer bits is spread over 0–255, a palette index without an entry is black.
#include <spng.h>

#include <array>
#include <cstring>
#include <vector>

#include "feed/image/codec.h"
#include "feed/image/exif.h"

namespace stoker::feed {
namespace {

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kChunkOverhead = 12;  // length, name, CRC
constexpr std::size_t kMaxChunk = std::size_t{64} << 20;

enum Color : std::uint8_t { kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgba = 6 };

int samples_of(int color) {
  constexpr std::array<int, 7> kSamples = {1, 0, 3, 1, 2, 0, 4};
  return color >= 0 && color < 7 ? kSamples[static_cast<std::size_t>(color)] : 0;
}

bool is_legal(int color, int bits) {
  const bool power = bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16;
  if (!power || samples_of(color) == 0) return false;
  if (color == kGrey) return true;
  return color == kPalette ? bits <= 8 : bits >= 8;
}

// The XMP packet in an iTXt chunk that is not compressed.
Bytes xmp_of(Bytes text) {
  using namespace std::string_view_literals;
  constexpr std::string_view kKey = "XML:com.adobe.xmp\0\0"sv;
  return starts_with(text, kKey) ? text.subspan(kKey.size()) : Bytes{};
}

Result<ImageInfo> read_header(Bytes file) {
  const Bytes ihdr = slice(file, kSignatureBytes);
  if (ihdr.size() < 25 || !starts_with(slice(ihdr, 4), "IHDR")) return corrupt("the PNG has no whole IHDR chunk");
  ImageInfo info;
  info.format = ImageFormat::kPng;
  const std::uint32_t width = be32(&ihdr[8]);
  const std::uint32_t height = be32(&ihdr[12]);
  info.bits = ihdr[16];
  const int color = ihdr[17];
  if (width == 0 || height == 0 || width > INT32_MAX || height > INT32_MAX)
    return corrupt("the PNG says it is " + std::to_string(width) + "x" + std::to_string(height) + " pixels");
  if (!is_legal(color, info.bits))
    return corrupt("the PNG has colour type " + std::to_string(color) + " with " + std::to_string(info.bits) + " bits");
  info.width = static_cast<int>(width);
  info.height = static_cast<int>(height);
  info.channels = color == kPalette ? 3 : samples_of(color);

  Bytes exif, xmp;
  for (Bytes rest = slice(file, kSignatureBytes); rest.size() >= kChunkOverhead;) {
    const std::size_t length = be32(rest.data());
    const Bytes data = slice(rest, 8, length);
    if (starts_with(slice(rest, 4), "eXIf")) exif = data;
    if (starts_with(slice(rest, 4), "iTXt") && !xmp_of(data).empty()) xmp = xmp_of(data);
    rest = slice(rest, length + kChunkOverhead);
  }
  info.exif_orientation = orientation(exif, xmp);
  return info;
}

struct ContextDeleter {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};

class PngCodec final : public Codec {
 public:
  Result<ImageInfo> open(Bytes file) override {
    file_ = file;
    Result<ImageInfo> info = read_header(file);
    if (info) header_ = *info;
    return info;
  }

  Status decode(const IntBox& box, RowSink& sink) override {
    context_.reset(spng_ctx_new(0));
    STOKER_CHECK(context_ != nullptr, "out of memory");
    STOKER_TRY(start());
    const Status status = ihdr_.interlace_method != 0 ? whole(box, sink) : row_by_row(box, sink);
    context_.reset();
    return status;
  }

 private:
  static Error failed(int code) { return corrupt(std::string("the PNG does not decode: ") + spng_strerror(code)); }

  Status start() {
    spng_ctx* context = context_.get();
    spng_set_crc_action(context, SPNG_CRC_USE, SPNG_CRC_USE);  // Pillow does not check that of pixel data
    spng_set_image_limits(context, static_cast<std::uint32_t>(header_.width),
                          static_cast<std::uint32_t>(header_.height));
    spng_set_chunk_limits(context, kMaxChunk, kMaxChunk);
    if (const int code = spng_set_png_buffer(context, file_.data(), file_.size())) return failed(code);
    if (const int code = spng_get_ihdr(context, &ihdr_)) return failed(code);
    palette_ = {};
    if (const int code = spng_get_plte(context, &palette_); code != 0 && code != SPNG_ECHUNKAVAIL) return failed(code);
    return {};
  }

  std::size_t raw_row_bytes() const {
    const auto bits = static_cast<std::size_t>(samples_of(ihdr_.color_type)) * ihdr_.bit_depth;
    return (static_cast<std::size_t>(header_.width) * bits + 7) / 8;
  }

  Status row_by_row(const IntBox& box, RowSink& sink) {
    if (const int code = spng_decode_image(context_.get(), nullptr, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE))
      return failed(code);
    raw_.resize(raw_row_bytes());
    pixels_.resize(row_bytes(box.width));
    for (int y = 0; y < header_.height; ++y) {
      const int code = spng_decode_row(context_.get(), raw_.data(), raw_.size());
      if (code != 0 && code != SPNG_EOI) return failed(code);
      if (y >= box.top && y < box.top + box.height) give(raw_.data(), y, box, sink);
    }
    return {};
  }

  Status whole(const IntBox& box, RowSink& sink) {
    const std::size_t stride = raw_row_bytes();
    raw_.resize(stride * static_cast<std::size_t>(header_.height));
    if (const int code = spng_decode_image(context_.get(), raw_.data(), raw_.size(), SPNG_FMT_RAW, 0))
      return failed(code);
    pixels_.resize(row_bytes(box.width));
    for (int y = box.top; y < box.top + box.height; ++y)
      give(raw_.data() + static_cast<std::size_t>(y) * stride, y, box, sink);
    return {};
  }

  void give(const std::uint8_t* raw, int y, const IntBox& box, RowSink& sink) {
    for (int x = 0; x < box.width; ++x) put(raw, box.left + x, &pixels_[static_cast<std::size_t>(x) * kPixelBytes]);
    sink.rows(y - box.top, 1, pixels_.data(), pixels_.size());
  }

  void put(const std::uint8_t* raw, int x, std::uint8_t* out) const {
    const int bits = ihdr_.bit_depth;
    const int samples = samples_of(ihdr_.color_type);
    if (bits < 8) {
      const int at = x * bits;
      const int mask = (1 << bits) - 1;
      const int value = raw[at / 8] >> (8 - bits - at % 8) & mask;
      return ihdr_.color_type == kPalette ? put_palette(value, out) : put_grey(value * 255 / mask, out);
    }
    const std::uint8_t* p = raw + static_cast<std::size_t>(x) * static_cast<std::size_t>(samples * bits / 8);
    if (ihdr_.color_type == kPalette) return put_palette(p[0], out);
    if (samples <= 2) return put_grey(p[0], out);
    const int step = bits / 8;  // big-endian: the high byte comes first
    for (int c = 0; c < 3; ++c) out[c] = p[c * step];
  }

  static void put_grey(int value, std::uint8_t* out) { std::memset(out, value, 3); }
  void put_palette(int index, std::uint8_t* out) const {
    const spng_plte_entry& entry = palette_.entries[index];
    const bool known = static_cast<std::uint32_t>(index) < palette_.n_entries;
    out[0] = known ? entry.red : 0;
    out[1] = known ? entry.green : 0;
    out[2] = known ? entry.blue : 0;
  }

  Bytes file_;
  ImageInfo header_;
  std::unique_ptr<spng_ctx, ContextDeleter> context_;
  spng_ihdr ihdr_{};
  spng_plte palette_{};
  std::vector<std::uint8_t> raw_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace

std::unique_ptr<Codec> make_png_codec() { return std::make_unique<PngCodec>(); }

}  // namespace stoker::feed
