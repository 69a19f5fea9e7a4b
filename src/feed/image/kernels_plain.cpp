#include <algorithm>
#include <cstring>

#include "feed/image/kernels.h"

namespace stoker::feed::plain {
namespace {

constexpr int kHalf = 1 << (kWeightBits - 1);

int weight_at(const TapPair* weights, int tap) {
  const TapPair& pair = weights[tap / 2];
  return pair.high[tap % 2] * (1 << kLowBits) + pair.low[tap % 2];
}

std::uint8_t to_byte(int sum) { return static_cast<std::uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

}  // namespace

void resize_horizontal(const std::uint8_t* in, std::size_t in_stride, int rows, const Axis& axis, std::uint8_t* out,
                       std::size_t out_stride) {
  for (int y = 0; y < rows; ++y, in += in_stride, out += out_stride)
    for (int x = 0; x < axis.count; ++x) {
      const auto i = static_cast<std::size_t>(x);
      const TapPair* weights = &axis.weight[i * static_cast<std::size_t>(axis.pairs)];
      for (int c = 0; c < 3; ++c) {
        int sum = kHalf;
        for (int tap = 0; tap < axis.taps[i]; ++tap) sum += in[(axis.start[i] + tap) * 4 + c] * weight_at(weights, tap);
        out[x * 4 + c] = to_byte(sum);
      }
    }
}

void resize_vertical(const std::uint8_t* in, std::size_t stride, int taps, const TapPair* weights, std::size_t bytes,
                     std::uint8_t* out) {
  for (std::size_t x = 0; x < bytes; ++x) {
    int sum = kHalf;
    for (int tap = 0; tap < taps; ++tap)
      sum += in[static_cast<std::size_t>(tap) * stride + x] * weight_at(weights, tap);
    out[x] = to_byte(sum);
  }
}

void store_rgb(const std::uint8_t* pixels, int count, std::uint8_t* out) {
  for (int i = 0; i < count; ++i) std::memcpy(out + i * 3, pixels + i * 4, 3);
}

void store_planes(const std::uint8_t* pixels, int count, const Normalizer& normalizer, float* red, float* green,
                  float* blue) {
  for (int i = 0; i < count; ++i) {
    red[i] = normalizer.table[0][pixels[i * 4]];
    green[i] = normalizer.table[1][pixels[i * 4 + 1]];
    blue[i] = normalizer.table[2][pixels[i * 4 + 2]];
  }
}

}  // namespace stoker::feed::plain
