// One axis of a resize: which source pixels make each output pixel, with Pillow's integer weights.
#pragma once

#include <cstdint>
#include <vector>

#include "stoker/feed/image.h"

namespace stoker::feed {

// Pillow's weights are rounded to 22 bits behind the point and summed in 32-bit integers. Here each is kept as
// high · 2¹¹ + low, so that two of them fit one 16-bit multiply-add and the sum is still the same integer.
inline constexpr int kWeightBits = 22;
inline constexpr int kLowBits = 11;

// Two neighbouring taps, laid out for a multiply-add of 16-bit pairs.
struct TapPair {
  std::int16_t high[2];
  std::int16_t low[2];
};

struct Axis {
  int count = 0;         // outputs, a part of the resize's outputs
  int source_begin = 0;  // the source pixels that they need, [begin, end)
  int source_end = 0;
  bool identity = false;        // no resize: output i is source pixel source_begin + i, or the mirror of it
  bool mirrored = false;        // outputs are in reverse order
  int pairs = 0;                // tap pairs an output, unused taps weigh 0; 0: the output is the pixel at `start`
  std::vector<int> start;       // an output's first tap, counted from source_begin
  std::vector<int> taps;        // how many it has
  std::vector<TapPair> weight;  // count · pairs

  // Scratch of make_axis(): one output's weights as they are computed, all outputs' after rounding, `row` apart.
  std::vector<double> exact;
  std::vector<int> rounded;
  int row = 0;
};

// What an axis is made from: `length` pixels, from `offset` on, of a line of `pixels`. Whole pixels unless the picture
// is decoded smaller than it is.
struct Stretch {
  int pixels = 0;
  double offset = 0;
  double length = pixels;

  bool is_whole() const { return offset == 0 && length == pixels; }
};

// Fills `axis` for outputs [first, first + count) of a resize of `in` to `out`; `mirror` reverses their order.
// 0 ≤ first, first + count ≤ out, count > 0.
void make_axis(const Stretch& in, int out, int first, int count, bool mirror, Interpolation interpolation, Axis& axis);

// True when the vertical pass goes first; only asked where both passes are needed.
bool vertical_first(Arithmetic arithmetic, int in_width, int in_height, int out_width, int out_height);

}  // namespace stoker::feed
