// One picture's bytes → pixels in a batch slot: decode, then crop, resize, flip, normalise and lay out in one pass.
//
// Pixels are those of Pillow: `Image.open(f).convert("RGB").crop(c).resize(s)`, bit for bit, but for 16-bit grey, which
// Pillow clips to white and Stoker scales (v >> 8). EXIF orientation is ignored unless asked for, as Pillow does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "stoker/base/status.h"

namespace stoker::feed {

// Pillow's own limit before it speaks of a decompression bomb; beyond it a file is bad.
inline constexpr std::uint64_t kMaxPixels = 178'956'970;

enum class ImageFormat { kJpeg, kPng, kWebp, kBmp, kGif, kOther };
const char* name(ImageFormat format);

// What the header says, before any pixel is allocated.
struct ImageInfo {
  ImageFormat format = ImageFormat::kOther;
  int width = 0;  // as stored; with ExifPolicy::kApply, as shown
  int height = 0;
  int channels = 0;          // of the file: 1 grey, 2 grey + alpha, 3 colour or palette, 4 CMYK or colour + alpha
  int bits = 8;              // a channel
  int exif_orientation = 1;  // 1–8
};

struct IntBox {
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;

  friend bool operator==(const IntBox&, const IntBox&) = default;
};

enum class Interpolation { kNearest, kBilinear, kBicubic };  // bilinear and bicubic with antialias, as Pillow
enum class ExifPolicy { kIgnore, kApply };

// Which pass comes first where both are needed. Pillow ≤ 12.3: horizontal, always. Pillow 13: vertical when
// out_h < in_h and 2·(in_w − out_w) < in_h − out_h. Results differ by one step in one image of ten.
enum class Arithmetic { kPillow12, kPillow13 };

// What happens to the picture, in this order: crop `crop` out of the source, resize it to `width` × `height`, cut
// `window` out of that (parts outside are black, as torchvision's CenterCrop pads), mirror it.
struct Geometry {
  IntBox crop;
  int width = 0;
  int height = 0;
  IntBox window;
  bool mirror = false;
  Interpolation interpolation = Interpolation::kBilinear;
};

enum class PixelType { kUint8Nhwc, kFloat32Nchw };

// How a float32 result comes to [0, 1]; the two differ in the last bit of some values.
enum class UnitScale {
  kDivide,    // v / 255, as torchvision's ToTensor
  kMultiply,  // v · float(1 / 255), as torchvision v2's ToDtype(float32, scale=True)
};

struct PixelOptions {
  PixelType type = PixelType::kFloat32Nchw;
  UnitScale unit_scale = UnitScale::kDivide;
  // float32: (v / 255 − mean) / std, computed in float32 as torchvision does. Ignored for uint8.
  std::array<float, 3> mean = {0, 0, 0};
  std::array<float, 3> stddev = {1, 1, 1};
};

// kFast: a JPEG whose crop is at least twice as large as the result, both ways, is decoded at 1/2, 1/4 or 1/8 (the DCT
// then gives fewer pixels) and resized from there. Not Pillow's pixels: docs/guide/loader.md has the measured error.
enum class Fidelity { kExact, kFast };

struct DecoderOptions {
  ExifPolicy exif = ExifPolicy::kIgnore;
  Fidelity fidelity = Fidelity::kExact;
  Arithmetic arithmetic = Arithmetic::kPillow13;
  std::uint64_t max_pixels = kMaxPixels;
};

// Decodes one picture after another; keeps its codecs and scratch memory between them.
// Threads: one owner at a time; make one a thread.
class ImageDecoder {
 public:
  explicit ImageDecoder(DecoderOptions options = {});
  ~ImageDecoder();
  ImageDecoder(ImageDecoder&&) noexcept;
  ImageDecoder& operator=(ImageDecoder&&) noexcept;

  // Reads the header of `file`, whose bytes must stay until the render() calls for it are done.
  // Errors: kCorrupt (damaged or cut), kUnsupported (a format or kind that Stoker does not decode), kBadInput (over
  // max_pixels, or empty). Messages say what was found but not the path, which the caller knows.
  Result<ImageInfo> open(std::span<const std::byte> file);

  // Renders the opened picture into `out`, window.width · window.height · 3 values. Decodes only the rows and columns
  // that the crop needs. Errors: kCorrupt; then `out` holds rubbish. A JPEG that is cut short or damaged is kCorrupt
  // exactly where Pillow's default (LOAD_TRUNCATED_IMAGES off) refuses it.
  Status render(const Geometry& geometry, const PixelOptions& pixels, void* out);

  // The whole picture as RGB, height · width · 3 bytes.
  Result<std::vector<std::uint8_t>> rgb();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker::feed
