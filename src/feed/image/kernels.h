// The inner loops of a resize, for the widest vectors that the CPU at hand has. All of them give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "feed/image/axis.h"

namespace stoker::feed {

// How a byte becomes a float: a chain of float32 operations that gives exactly torchvision's value for each of the 256
// bytes. A Normalizer proves that for the vector code in use; where it fails, the table is used instead.
struct NormalizerChannel {
  float scale = 1, scale_rest = 0;  // v · (scale + scale_rest)
  float mean = 0;
  float inverse = 1, inverse_rest = 0;  // … · (1 / std), in two parts
};
struct Normalizer {
  NormalizerChannel channel[3];
  float table[3][256] = {};
  bool arithmetic = false;  // the chain gives the table's values
};

// `rows` rows of RGBX through a horizontal axis with weights. In rows are readable kRowPadding bytes past their end.
void resize_horizontal(const std::uint8_t* in, std::size_t in_stride, int rows, const Axis& axis, std::uint8_t* out,
                       std::size_t out_stride);

// One output row: `taps` rows that start at `in`, weighed, over `bytes` bytes. Writes up to 32 bytes more.
void resize_vertical(const std::uint8_t* in, std::size_t stride, int taps, const TapPair* weights, std::size_t bytes,
                     std::uint8_t* out);

// RGBX to RGB.
void store_rgb(const std::uint8_t* pixels, int count, std::uint8_t* out);

// RGBX to three float rows.
void store_planes(const std::uint8_t* pixels, int count, const Normalizer& normalizer, float* red, float* green,
                  float* blue);

// "AVX2", "NEON", …: what the loops above run on here.
const char* kernel_target();
// Highway's bits of all that they were compiled for; for tests.
std::int64_t kernel_targets();

// The same four in plain C++: for CPUs without the vectors, for the ends of rows, and as the tests' reference.
namespace plain {
void resize_horizontal(const std::uint8_t* in, std::size_t in_stride, int rows, const Axis& axis, std::uint8_t* out,
                       std::size_t out_stride);
void resize_vertical(const std::uint8_t* in, std::size_t stride, int taps, const TapPair* weights, std::size_t bytes,
                     std::uint8_t* out);
void store_rgb(const std::uint8_t* pixels, int count, std::uint8_t* out);
void store_planes(const std::uint8_t* pixels, int count, const Normalizer& normalizer, float* red, float* green,
                  float* blue);
}  // namespace plain

}  // namespace stoker::feed
