#include "feed/image/renderer.h"

#include <algorithm>
#include <cstring>

namespace stoker::feed {
namespace {

// What is between `from` and `from + size` of a line of `length`.
struct Span {
  int first = 0;
  int count = 0;
};
Span visible(int from, int size, int length) {
  const int first = std::max(from, 0);
  const std::int64_t end = std::min<std::int64_t>(std::int64_t{from} + size, length);
  return {first, static_cast<int>(std::max<std::int64_t>(end - first, 0))};
}

std::string text(const IntBox& box) {
  return std::to_string(box.width) + "x" + std::to_string(box.height) + " at (" + std::to_string(box.left) + ", " +
         std::to_string(box.top) + ")";
}

bool is_inside(const IntBox& box, int width, int height) {
  return box.left >= 0 && box.top >= 0 && box.width > 0 && box.height > 0 && box.width <= width - box.left &&
         box.height <= height - box.top;
}

bool same(const PixelOptions& a, const PixelOptions& b) {
  return a.unit_scale == b.unit_scale && a.mean == b.mean && a.stddev == b.stddev;
}

std::size_t index(int row, std::size_t stride) { return static_cast<std::size_t>(row) * stride; }

// A crop's side in pixels that are `denominator` of the picture's wide.
Stretch stretch(int from, int length, int denominator) {
  const int first = from / denominator;
  const int end = (from + length + denominator - 1) / denominator;
  const double unit = denominator;
  return {end - first, from / unit - first, length / unit};
}

// An axis without weights: output i is one source pixel.
void pick_pixels(const Axis& axis, const std::uint8_t* in, std::uint8_t* out) {
  if (axis.identity && !axis.mirrored) {
    std::memcpy(out, in, static_cast<std::size_t>(axis.count) * kPixelBytes);
    return;
  }
  for (const int start : axis.start) {
    std::memcpy(out, in + static_cast<std::size_t>(start) * kPixelBytes, kPixelBytes);
    out += kPixelBytes;
  }
}

}  // namespace

Result<IntBox> Renderer::plan(const Geometry& geometry, const PixelOptions& pixels, Arithmetic arithmetic,
                              const Picture& picture, void* out) {
  const auto [width, height, denominator] = picture;
  const IntBox& crop = geometry.crop;
  const IntBox& window = geometry.window;
  if (!is_inside(crop, width, height))
    return Error{ErrorCode::kBadInput, "the crop " + text(crop) + " does not lie in a picture of " +
                                           std::to_string(width) + "x" + std::to_string(height)};
  if (geometry.width <= 0 || geometry.height <= 0 || window.width <= 0 || window.height <= 0)
    return Error{ErrorCode::kBadInput, "a resize to " + std::to_string(geometry.width) + "x" +
                                           std::to_string(geometry.height) + " seen through " + text(window) +
                                           " has no pixels"};
  const Span columns = visible(window.left, window.width, geometry.width);
  const Span lines = visible(window.top, window.height, geometry.height);
  if (columns.count == 0 || lines.count == 0)
    return Error{ErrorCode::kBadInput, "the window " + text(window) + " shows nothing of the picture"};

  const Stretch x = stretch(crop.left, crop.width, denominator);
  const Stretch y = stretch(crop.top, crop.height, denominator);
  make_axis(x, geometry.width, columns.first, columns.count, geometry.mirror, geometry.interpolation, across_);
  make_axis(y, geometry.height, lines.first, lines.count, false, geometry.interpolation, down_);
  vertical_first_ = across_.pairs > 0 && down_.pairs > 0 &&
                    vertical_first(arithmetic, x.pixels, y.pixels, geometry.width, geometry.height);
  const int source_width = across_.source_end - across_.source_begin;
  const int source_height = down_.source_end - down_.source_begin;

  set_pixels(pixels);
  out_ = out;
  window_ = window;
  out_top_ = lines.first - window.top;
  out_left_ = columns.first - window.left;
  if (geometry.mirror) out_left_ = window.width - out_left_ - columns.count;
  if (columns.count < window.width || lines.count < window.height) paint_black(window);

  next_row_ = 0;
  middle_stride_ = row_bytes(vertical_first_ ? source_width : across_.count);
  middle_.resize(index(source_height, middle_stride_));
  line_.resize(middle_stride_);
  finished_.resize(row_bytes(across_.count));
  return IntBox{crop.left / denominator + across_.source_begin, crop.top / denominator + down_.source_begin,
                source_width, source_height};
}

void Renderer::set_pixels(const PixelOptions& pixels) {
  if (!same(options_, pixels)) normalizer_.reset();
  options_ = pixels;
  if (pixels.type == PixelType::kFloat32Nchw && !normalizer_) normalizer_ = make_normalizer(pixels);
}

void Renderer::paint_black(const IntBox& window) {
  const std::size_t plane = static_cast<std::size_t>(window.width) * static_cast<std::size_t>(window.height);
  if (options_.type == PixelType::kUint8Nhwc) {
    std::memset(out_, 0, plane * 3);
    return;
  }
  auto* out = static_cast<float*>(out_);
  for (std::size_t c = 0; c < 3; ++c) std::fill_n(out + c * plane, plane, normalizer_->table[c][0]);
}

void Renderer::rows(int first, int count, const std::uint8_t* pixels, std::size_t stride) {
  std::uint8_t* middle = middle_.data() + index(first, middle_stride_);
  if (vertical_first_) {
    for (int i = 0; i < count; ++i)
      std::memcpy(middle + index(i, middle_stride_), pixels + index(i, stride), middle_stride_ - kRowPadding);
  } else {
    horizontal(pixels, stride, count, middle, middle_stride_);
  }
  const int received = first + count;
  while (next_row_ < down_.count) {
    const auto row = static_cast<std::size_t>(next_row_);
    if (down_.start[row] + down_.taps[row] > received) break;
    finish_row(next_row_++);
  }
}

void Renderer::horizontal(const std::uint8_t* in, std::size_t in_stride, int rows, std::uint8_t* out,
                          std::size_t out_stride) {
  if (across_.pairs > 0) return resize_horizontal(in, in_stride, rows, across_, out, out_stride);
  for (int i = 0; i < rows; ++i) pick_pixels(across_, in + index(i, in_stride), out + index(i, out_stride));
}

void Renderer::finish_row(int row) {
  const auto i = static_cast<std::size_t>(row);
  const std::uint8_t* source = middle_.data() + index(down_.start[i], middle_stride_);
  if (down_.pairs > 0) {
    resize_vertical(source, middle_stride_, down_.taps[i], &down_.weight[i * static_cast<std::size_t>(down_.pairs)],
                    middle_stride_ - kRowPadding, line_.data());
    source = line_.data();
  }
  if (vertical_first_) {
    horizontal(source, middle_stride_, 1, finished_.data(), finished_.size());
    source = finished_.data();
  }
  store(row, source);
}

void Renderer::store(int row, const std::uint8_t* pixels) {
  const std::size_t width = static_cast<std::size_t>(window_.width);
  const std::size_t at = static_cast<std::size_t>(out_top_ + row) * width + static_cast<std::size_t>(out_left_);
  if (options_.type == PixelType::kUint8Nhwc)
    return store_rgb(pixels, across_.count, static_cast<std::uint8_t*>(out_) + at * 3);
  const std::size_t plane = width * static_cast<std::size_t>(window_.height);
  float* red = static_cast<float*>(out_) + at;
  store_planes(pixels, across_.count, *normalizer_, red, red + plane, red + 2 * plane);
}

}  // namespace stoker::feed
