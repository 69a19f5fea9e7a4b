// Rows of a decoded picture → a finished sample: resize, window, mirror, number format and layout, row by row.
//
// An output row is made as soon as the source rows that it needs are there, so that the picture is never held whole.
#pragma once

#include <optional>

#include "feed/image/codec.h"
#include "feed/image/normalizer.h"

namespace stoker::feed {

// What the rows will be of: a picture of `width` × `height`, decoded at 1/`denominator` of that.
struct Picture {
  int width = 0;
  int height = 0;
  int denominator = 1;
};

class Renderer final : public RowSink {
 public:
  // Plans one sample and says which part of the decoded picture it needs. `out` is written by rows().
  // `geometry` is in pixels of the whole picture. Errors: kBadInput when it does not fit.
  Result<IntBox> plan(const Geometry& geometry, const PixelOptions& pixels, Arithmetic arithmetic,
                      const Picture& picture, void* out);
  // The part's rows, in order.
  void rows(int first, int count, const std::uint8_t* pixels, std::size_t stride) override;

 private:
  void set_pixels(const PixelOptions& pixels);
  void paint_black(const IntBox& window);
  void horizontal(const std::uint8_t* in, std::size_t in_stride, int rows, std::uint8_t* out, std::size_t out_stride);
  void finish_row(int row);
  void store(int row, const std::uint8_t* pixels);

  Axis across_;
  Axis down_;
  bool vertical_first_ = false;
  PixelOptions options_;
  std::optional<Normalizer> normalizer_;  // of options_, made when first asked for
  void* out_ = nullptr;
  IntBox window_;
  int out_left_ = 0;  // where the visible part lies in the window
  int out_top_ = 0;
  int next_row_ = 0;

  std::vector<std::uint8_t> middle_;  // source rows after the first pass
  std::size_t middle_stride_ = 0;
  std::vector<std::uint8_t> line_;
  std::vector<std::uint8_t> finished_;
};

}  // namespace stoker::feed
