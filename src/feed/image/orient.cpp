#include "feed/image/orient.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace stoker::feed {
namespace {

struct Point {
  int x;
  int y;
};

// Where pixel (x, y) of a stored picture of `width` × `height` is shown.
Point shown_at(int x, int y, int orientation, int width, int height) {
  const int right = width - 1 - x;
  const int bottom = height - 1 - y;
  switch (orientation) {
    case 2:
      return {right, y};
    case 3:
      return {right, bottom};
    case 4:
      return {x, bottom};
    case 5:
      return {y, x};
    case 6:
      return {bottom, x};
    case 7:
      return {bottom, right};
    case 8:
      return {y, right};
    default:
      return {x, y};
  }
}

// Each turn undone by one of the eight: 6 and 8 undo each other, the others themselves.
int inverse(int orientation) { return orientation == 6 ? 8 : orientation == 8 ? 6 : orientation; }

}  // namespace

IntBox stored_box(const IntBox& shown, int orientation, int width, int height) {
  const int shown_width = swaps_sides(orientation) ? height : width;
  const int shown_height = swaps_sides(orientation) ? width : height;
  const int back = inverse(orientation);
  const Point a = shown_at(shown.left, shown.top, back, shown_width, shown_height);
  const Point b = shown_at(shown.left + shown.width - 1, shown.top + shown.height - 1, back, shown_width, shown_height);
  return {std::min(a.x, b.x), std::min(a.y, b.y), std::abs(a.x - b.x) + 1, std::abs(a.y - b.y) + 1};
}

Turner::Turner(const IntBox& stored, int orientation)
    : stored_(stored),
      orientation_(orientation),
      width_(swaps_sides(orientation) ? stored.height : stored.width),
      height_(swaps_sides(orientation) ? stored.width : stored.height),
      pixels_(row_bytes(width_) * static_cast<std::size_t>(height_)) {}

void Turner::rows(int first, int count, const std::uint8_t* pixels, std::size_t stride) {
  const std::size_t out_stride = row_bytes(width_);
  for (int i = 0; i < count; ++i)
    for (int x = 0; x < stored_.width; ++x) {
      const Point at = shown_at(x, first + i, orientation_, stored_.width, stored_.height);
      std::memcpy(&pixels_[static_cast<std::size_t>(at.y) * out_stride + static_cast<std::size_t>(at.x) * kPixelBytes],
                  pixels + static_cast<std::size_t>(i) * stride + static_cast<std::size_t>(x) * kPixelBytes,
                  kPixelBytes);
    }
}

void Turner::give(RowSink& sink) const { sink.rows(0, height_, pixels_.data(), row_bytes(width_)); }

}  // namespace stoker::feed
