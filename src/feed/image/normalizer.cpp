#include "feed/image/normalizer.h"

#include <array>
#include <cstring>

namespace stoker::feed {
namespace {

// torchvision's own order: one rounding for each of scale, subtraction and division.
float reference(int value, UnitScale scale, float mean, float stddev) {
  const float byte = static_cast<float>(value);
  const float unit = scale == UnitScale::kDivide ? byte / 255.0F : byte * static_cast<float>(1.0 / 255.0);
  const float centered = unit - mean;
  return centered / stddev;
}

// `x` as a float and the float next to what is missing.
void split(double x, float& whole, float& rest) {
  whole = static_cast<float>(x);
  rest = static_cast<float>(x - static_cast<double>(whole));
}

bool chain_gives_table(const Normalizer& normalizer) {
  std::array<std::uint8_t, 256 * 4 + 64> pixels{};
  for (std::size_t v = 0; v < 256; ++v) std::memset(&pixels[v * 4], static_cast<int>(v), 4);
  float made[3][256];
  Normalizer trial = normalizer;
  trial.arithmetic = true;
  store_planes(pixels.data(), 256, trial, made[0], made[1], made[2]);
  // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): bits count, −0 is not 0
  return std::memcmp(made, normalizer.table, sizeof made) == 0;
}

}  // namespace

Normalizer make_normalizer(const PixelOptions& options) {
  Normalizer normalizer;
  for (std::size_t c = 0; c < 3; ++c) {
    NormalizerChannel& channel = normalizer.channel[c];
    if (options.unit_scale == UnitScale::kDivide)
      split(1.0 / 255.0, channel.scale, channel.scale_rest);
    else
      channel.scale = static_cast<float>(1.0 / 255.0);
    channel.mean = options.mean[c];
    split(1.0 / static_cast<double>(options.stddev[c]), channel.inverse, channel.inverse_rest);
    for (int v = 0; v < 256; ++v)
      normalizer.table[c][v] = reference(v, options.unit_scale, options.mean[c], options.stddev[c]);
  }
  normalizer.arithmetic = chain_gives_table(normalizer);
  return normalizer;
}

}  // namespace stoker::feed
