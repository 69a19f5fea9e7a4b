// Turns a stored picture to the way it is shown (EXIF orientation 2 to 8).
#pragma once

#include "feed/image/codec.h"

namespace stoker::feed {

// True for 5 to 8: shown width is stored height.
inline bool swaps_sides(int orientation) { return orientation >= 5; }

// The part of a stored picture of `width` × `height` that is shown at `shown`.
IntBox stored_box(const IntBox& shown, int orientation, int width, int height);

// Gathers the rows of a stored box and hands them on as they are shown.
class Turner final : public RowSink {
 public:
  Turner(const IntBox& stored, int orientation);
  void rows(int first, int count, const std::uint8_t* pixels, std::size_t stride) override;
  void give(RowSink& sink) const;

 private:
  const IntBox stored_;
  const int orientation_;
  const int width_;  // as shown
  const int height_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace stoker::feed
