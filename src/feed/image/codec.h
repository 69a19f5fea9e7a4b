// What every format's decoder looks like to the room: a header reader and a source of rows.
//
// Inside the room a pixel is four bytes: red, green, blue and one that nobody looks at.
#pragma once

#include <memory>
#include <string>

#include "feed/image/bytes.h"
#include "stoker/feed/image.h"

namespace stoker::feed {

inline constexpr int kPixelBytes = 4;
// Rows may be read this far past their last pixel: kernels load whole vectors.
inline constexpr std::size_t kRowPadding = 64;

inline std::size_t row_bytes(int width) { return static_cast<std::size_t>(width) * kPixelBytes + kRowPadding; }

// Takes rows from a decoder, in order, from the box's top on.
class RowSink {
 public:
  virtual ~RowSink() = default;
  // `count` rows, the first of them row `first` of the box, `stride` bytes apart. Each has the box's width in pixels
  // and kRowPadding readable bytes behind it, and is gone after the call.
  virtual void rows(int first, int count, const std::uint8_t* pixels, std::size_t stride) = 0;
};

// Decodes one file after another and keeps its memory between them.
class Codec {
 public:
  virtual ~Codec() = default;
  // Reads the header; allocates nothing that depends on it. Keeps a reference to `file`.
  virtual Result<ImageInfo> open(Bytes file) = 0;
  // The decode() calls from now on are of the picture at 1/`denominator` (1, 2, 4, 8) of its size, rounded up; until
  // the next open(). False: this format cannot.
  virtual bool shrink(int denominator) { return denominator == 1; }
  // Hands the rows of `box`, which lies inside the picture, to `sink`. May be called again.
  virtual Status decode(const IntBox& box, RowSink& sink) = 0;
};

std::unique_ptr<Codec> make_jpeg_codec();
std::unique_ptr<Codec> make_png_codec();
std::unique_ptr<Codec> make_webp_codec();
std::unique_ptr<Codec> make_bmp_codec();
std::unique_ptr<Codec> make_gif_codec();

// The format that the first bytes say; kOther for any that Stoker does not decode. Names are never asked.
ImageFormat detect(Bytes file);
// The error for a kOther file, which says what it is: a TIFF image, an HTML page, gzip data, nothing known.
Error not_decoded(Bytes file);

inline Error corrupt(std::string message) {
  return Error{ErrorCode::kCorrupt, std::move(message), "the file is damaged or cut short; fetch it again"};
}
inline Error unsupported(std::string message) {
  return Error{ErrorCode::kUnsupported, std::move(message), "convert the picture to PNG or baseline JPEG"};
}

}  // namespace stoker::feed
