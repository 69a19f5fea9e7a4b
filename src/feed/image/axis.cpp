#include "feed/image/axis.h"

#include <algorithm>
#include <cmath>

namespace stoker::feed {
namespace {

struct Triangle {
  static constexpr double kSupport = 1.0;
  static double at(double x) { return std::max(1.0 - std::fabs(x), 0.0); }
};

// Keys' cubic with a = −0.5.
struct Cubic {
  static constexpr double kSupport = 2.0;
  static double at(double x) {
    constexpr double a = -0.5;
    x = std::fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
  }
};

// Where output i of the axis stands among the outputs of the resize.
int output_at(int first, int count, bool mirror, int i) { return first + (mirror ? count - 1 - i : i); }

// The weights of all outputs, in double as Pillow computes them, then rounded half away from zero.
template <class Filter>
class Weights {
 public:
  Weights(const Stretch& in, int out, Axis& axis)
      : in_(in.pixels),
        offset_(in.offset),
        scale_(in.length / out),
        shrink_(1.0 / std::max(scale_, 1.0)),
        support_(Filter::kSupport * std::max(scale_, 1.0)),
        axis_(axis) {
    axis.row = static_cast<int>(std::ceil(support_)) * 2 + 1;
    axis.rounded.resize(static_cast<std::size_t>(axis.row) * static_cast<std::size_t>(axis.count));
    axis.exact.resize(static_cast<std::size_t>(axis.row));
  }

  // Output `output` becomes the axis' next one: its first tap, and its weights with the zeros at both ends trimmed.
  void append(int output) {
    const double center = offset_ + (output + 0.5) * scale_;
    // NOLINTBEGIN(bugprone-incorrect-roundings): Pillow's own, wrong below zero in the same way
    const int first = std::max(static_cast<int>(center - support_ + 0.5), 0);
    const int taps = std::max(std::min(static_cast<int>(center + support_ + 0.5), in_) - first, 1);
    // NOLINTEND(bugprone-incorrect-roundings)
    double* exact = axis_.exact.data();
    double sum = 0;
    for (int i = 0; i < taps; ++i) {
      exact[i] = Filter::at((i + first - center + 0.5) * shrink_);
      sum += exact[i];
    }
    int* row = axis_.rounded.data() + axis_.start.size() * static_cast<std::size_t>(axis_.row);
    for (int i = 0; i < taps; ++i) row[i] = rounded(sum != 0 ? exact[i] / sum : exact[i]);
    trim(first, taps, row);
  }

 private:
  static int rounded(double weight) {
    const double scaled = weight * (1 << kWeightBits);
    return static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  }

  void trim(int first, int taps, int* row) {
    while (taps > 1 && row[taps - 1] == 0) --taps;
    int zeros = 0;
    while (zeros + 1 < taps && row[zeros] == 0) ++zeros;
    if (zeros > 0) std::copy(row + zeros, row + taps, row);
    axis_.start.push_back(first + zeros);
    axis_.taps.push_back(taps - zeros);
  }

  const int in_;
  const double offset_;
  const double scale_;
  const double shrink_;
  const double support_;
  Axis& axis_;
};

template <class Filter>
void append_weights(const Stretch& in, int out, int first, Axis& axis) {
  Weights<Filter> weights(in, out, axis);
  for (int i = 0; i < axis.count; ++i) weights.append(output_at(first, axis.count, axis.mirrored, i));
}

std::int16_t high_part(int weight) { return static_cast<std::int16_t>(weight >> kLowBits); }
std::int16_t low_part(int weight) { return static_cast<std::int16_t>(weight & ((1 << kLowBits) - 1)); }

// Fits starts to the part of the source that is used, and lays the weights out in pairs. An output near the end starts
// earlier, with weights of zero, so that kernels which always read `pairs` pairs stay inside the row.
void pack(Axis& axis) {
  const int length = axis.source_end - axis.source_begin;
  axis.weight.assign(static_cast<std::size_t>(axis.count) * static_cast<std::size_t>(axis.pairs), TapPair{});
  for (std::size_t i = 0; i < axis.start.size(); ++i) {
    const int over = axis.start[i] + 2 * axis.pairs - length;
    const int shift = std::clamp(over, 0, axis.start[i]);
    const int* row = &axis.rounded[i * static_cast<std::size_t>(axis.row)];
    TapPair* out = &axis.weight[i * static_cast<std::size_t>(axis.pairs)];
    for (int tap = 0; tap < axis.taps[i]; ++tap) {
      const int at = tap + shift;
      out[at / 2].high[at % 2] = high_part(row[tap]);
      out[at / 2].low[at % 2] = low_part(row[tap]);
    }
    axis.start[i] -= shift;
    axis.taps[i] += shift;
  }
}

// Pillow walks in steps of the scale; the sum, not a product, decides where a pixel falls.
void append_nearest(int in, int out, Axis& axis, int first) {
  const double step = static_cast<double>(in) / out;
  double at = step * 0.5;
  for (int i = 0; i < first + axis.count; ++i, at += step)
    if (i >= first) axis.start.push_back(std::min(static_cast<int>(at), in - 1));
  if (axis.mirrored) std::reverse(axis.start.begin(), axis.start.end());
  axis.taps.assign(axis.start.size(), 1);
}

// Counts starts from the first source pixel that is used.
void find_source(Axis& axis) {
  axis.source_begin = *std::min_element(axis.start.begin(), axis.start.end());
  axis.source_end = 0;
  for (std::size_t i = 0; i < axis.start.size(); ++i) {
    axis.source_end = std::max(axis.source_end, axis.start[i] + axis.taps[i]);
    axis.start[i] -= axis.source_begin;
  }
}

}  // namespace

void make_axis(const Stretch& in, int out, int first, int count, bool mirror, Interpolation interpolation, Axis& axis) {
  axis.count = count;
  axis.mirrored = mirror;
  axis.identity = in.is_whole() && in.pixels == out;
  axis.pairs = 0;
  axis.start.clear();
  axis.taps.clear();
  axis.weight.clear();
  if (axis.identity || interpolation == Interpolation::kNearest) {
    append_nearest(in.pixels, out, axis, first);
    return find_source(axis);
  }
  if (interpolation == Interpolation::kBicubic)
    append_weights<Cubic>(in, out, first, axis);
  else
    append_weights<Triangle>(in, out, first, axis);
  find_source(axis);
  axis.pairs = (*std::max_element(axis.taps.begin(), axis.taps.end()) + 1) / 2;
  pack(axis);
}

bool vertical_first(Arithmetic arithmetic, int in_width, int in_height, int out_width, int out_height) {
  return arithmetic == Arithmetic::kPillow13 && out_height < in_height &&
         2 * (std::int64_t{in_width} - out_width) < std::int64_t{in_height} - out_height;
}

}  // namespace stoker::feed
