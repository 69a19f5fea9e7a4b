#include "feed/image/kernels.h"

#include <cstring>

// Each target costs compile time. SSSE3 and AVX3_DL bring nothing to 8- and 16-bit integers; vectors of unknown length
// (SVE, RVV) do not fit loops that give each row a block.
#if !defined(HWY_DISABLED_TARGETS)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "feed/image/kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's own order: foreach_target first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::feed::HWY_NAMESPACE {

// Without vectors. (Clang needs minutes for the vector code on the emulated ones.)
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void Horizontal(const std::uint8_t* in, std::size_t in_stride, int rows, const Axis& axis, std::uint8_t* out,
                std::size_t out_stride) {
  plain::resize_horizontal(in, in_stride, rows, axis, out, out_stride);
}
void Vertical(const std::uint8_t* in, std::size_t stride, int taps, const TapPair* weights, std::size_t bytes,
              std::uint8_t* out) {
  plain::resize_vertical(in, stride, taps, weights, bytes, out);
}
void StoreRgb(const std::uint8_t* pixels, int count, std::uint8_t* out) { plain::store_rgb(pixels, count, out); }
void StorePlanes(const std::uint8_t* pixels, int count, const Normalizer& normalizer, float* red, float* green,
                 float* blue) {
  plain::store_planes(pixels, count, normalizer, red, green, blue);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// Sums of products of 16-bit pairs, for the high and the low halves of the weights.
template <class D32>
struct Sums {
  using V = hn::VFromD<D32>;
  V high, high_rest, low, low_rest;

  HWY_INLINE Sums() : high(hn::Zero(D32())), high_rest(high), low(high), low_rest(high) {}

  template <class V16>
  HWY_INLINE void add(D32 d, V16 pixels, V16 high_weights, V16 low_weights) {
    high = hn::ReorderWidenMulAccumulate(d, pixels, high_weights, high, high_rest);
    low = hn::ReorderWidenMulAccumulate(d, pixels, low_weights, low, low_rest);
  }

  // Pillow's rounding: half a unit was there before the first product.
  HWY_INLINE V total(D32 d) const {
    const V sum = hn::Add(hn::ShiftLeft<kLowBits>(hn::RearrangeToOddPlusEven(high, high_rest)),
                          hn::RearrangeToOddPlusEven(low, low_rest));
    return hn::ShiftRight<kWeightBits>(hn::Add(sum, hn::Set(d, 1 << (kWeightBits - 1))));
  }
};

// 16 bytes of each of as many rows as the vector has blocks.
template <class D8>
HWY_INLINE hn::Vec<D8> load_rows(D8 d, const std::uint8_t* at, std::size_t stride) {
  if constexpr (hn::MaxLanes(D8()) <= 16) {
    return hn::LoadU(d, at);
  } else {
    const hn::Half<D8> half;
    const std::size_t rows = hn::MaxLanes(half) / 16;
    return hn::Combine(d, load_rows(half, at + rows * stride, stride), load_rows(half, at, stride));
  }
}

// 8 bytes to each of as many rows as the vector holds.
template <class D8>
HWY_INLINE void store_rows(D8 d, hn::Vec<D8> pixels, std::uint8_t* HWY_RESTRICT at, std::size_t stride) {
  const hn::Half<D8> half;
  if constexpr (hn::MaxLanes(D8()) == 8) {
    hn::StoreU(pixels, d, at);
  } else {
    store_rows(half, hn::LowerHalf(half, pixels), at, stride);
    store_rows(half, hn::UpperHalf(half, pixels), at + hn::MaxLanes(half) / 8 * stride, stride);
  }
}

template <class D16>
HWY_INLINE hn::Vec<D16> broadcast(D16 d, const std::int16_t (&pair)[2]) {
  std::int32_t both;
  std::memcpy(&both, pair, sizeof both);
  return hn::BitCast(d, hn::Set(hn::RepartitionToWide<D16>(), both));
}

// Two pixels' bytes as 16-bit numbers, channel by channel: r0 r1 g0 g1 b0 b1 x0 x1.
alignas(16) constexpr std::uint8_t kFirstPair[16] = {0, 128, 4, 128, 1, 128, 5, 128, 2, 128, 6, 128, 3, 128, 7, 128};
alignas(16) constexpr std::uint8_t kSecondPair[16] = {8,  128, 12, 128, 9,  128, 13, 128,
                                                      10, 128, 14, 128, 11, 128, 15, 128};

// A horizontal pass over a few rows at a time: a 128-bit block of a vector is one row, and there are two vectors.
// kPairs is the axis' number of tap pairs, or 0 for any number.
template <int kPairs, int kVectors, class D8>
class RowGroup {
  using D16 = hn::Repartition<std::int16_t, D8>;
  using D32 = hn::Repartition<std::int32_t, D8>;

 public:
  static constexpr int kRows = kVectors * static_cast<int>(hn::MaxLanes(D8()) / 16);

  static HWY_INLINE void run(const std::uint8_t* HWY_RESTRICT in, std::size_t in_stride, const Axis& axis,
                             std::uint8_t* HWY_RESTRICT out, std::size_t out_stride) {
    const int count = axis.count;
    const int pairs = kPairs != 0 ? kPairs : axis.pairs;
    const int* HWY_RESTRICT start = axis.start.data();
    const TapPair* HWY_RESTRICT weights = axis.weight.data();
    int x = 0;
    for (; x + 1 < count; x += 2, weights += 2 * pairs)
      store(Output(in + start[x] * 4, in_stride, weights, pairs),
            Output(in + start[x + 1] * 4, in_stride, weights + pairs, pairs), out + x * 4, out_stride);
    if (x == count) return;
    const Output last(in + start[x] * 4, in_stride, weights, pairs);
    store(last, last, out + x * 4, out_stride);
  }

 private:
  static constexpr std::size_t kStep = hn::MaxLanes(D8()) / 16;  // rows a vector
  static constexpr D8 d8{};
  static constexpr D16 d16{};
  static constexpr D32 d32{};

  struct Output {
    Sums<D32> sums[kVectors];

    HWY_INLINE Output(const std::uint8_t* HWY_RESTRICT in, std::size_t in_stride, const TapPair* HWY_RESTRICT weights,
                      int pairs) {
      const auto first = hn::LoadDup128(d8, kFirstPair);
      const auto second = hn::LoadDup128(d8, kSecondPair);
      for (int p = 0; p < pairs; p += 2)
        for (int v = 0; v < kVectors; ++v) {
          const auto pixels = load_rows(d8, in + v * kStep * in_stride + p * 8, in_stride);
          add(v, hn::TableLookupBytesOr0(pixels, first), weights[p]);
          if (p + 1 < pairs) add(v, hn::TableLookupBytesOr0(pixels, second), weights[p + 1]);
        }
    }
    HWY_INLINE void add(int v, hn::Vec<D8> pixels, const TapPair& weight) {
      sums[v].add(d32, hn::BitCast(d16, pixels), broadcast(d16, weight.high), broadcast(d16, weight.low));
    }
  };

  // Blocks stay apart: each row's two outputs come to lie side by side.
  static HWY_INLINE void store(const Output& a, const Output& b, std::uint8_t* HWY_RESTRICT out,
                               std::size_t out_stride) {
    const hn::Half<D8> half;
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto both = hn::ReorderDemote2To(d16, a.sums[v].total(d32), b.sums[v].total(d32));
      store_rows(half, hn::DemoteTo(half, both), out + v * kStep * out_stride, out_stride);
    }
  }
};

template <int kPairs>
void HorizontalOf(const std::uint8_t* in, std::size_t in_stride, int rows, const Axis& axis, std::uint8_t* out,
                  std::size_t out_stride) {
  using Wide = RowGroup<kPairs, 2, hn::ScalableTag<std::uint8_t> >;
  using Single = RowGroup<kPairs, 1, hn::CappedTag<std::uint8_t, 16> >;
  int y = 0;
  const auto in_row = [&] { return in + static_cast<std::size_t>(y) * in_stride; };
  const auto out_row = [&] { return out + static_cast<std::size_t>(y) * out_stride; };
  for (; y + Wide::kRows <= rows; y += Wide::kRows) Wide::run(in_row(), in_stride, axis, out_row(), out_stride);
  for (; y < rows; ++y) Single::run(in_row(), in_stride, axis, out_row(), out_stride);
}

void Horizontal(const std::uint8_t* in, std::size_t in_stride, int rows, const Axis& axis, std::uint8_t* out,
                std::size_t out_stride) {
  if (axis.pairs == 1) return HorizontalOf<1>(in, in_stride, rows, axis, out, out_stride);
  if (axis.pairs == 2) return HorizontalOf<2>(in, in_stride, rows, axis, out, out_stride);
  HorizontalOf<0>(in, in_stride, rows, axis, out, out_stride);
}

// kPairs: as above.
template <int kPairs>
void VerticalOf(const std::uint8_t* HWY_RESTRICT in, std::size_t stride, int taps, const TapPair* HWY_RESTRICT weights,
                std::size_t bytes, std::uint8_t* HWY_RESTRICT out) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  const hn::RepartitionToWide<decltype(d16)> d32;
  const int pairs = kPairs != 0 ? kPairs : (taps + 1) / 2;
  for (std::size_t x = 0; x < bytes; x += hn::Lanes(d16)) {
    Sums<decltype(d32)> lower;
    Sums<decltype(d32)> upper;
    const std::uint8_t* row = in + x;
    for (int p = 0; p < pairs; ++p, row += 2 * stride) {
      const auto high = broadcast(d16, weights[p].high);
      const auto low = broadcast(d16, weights[p].low);
      const auto a = hn::PromoteTo(d16, hn::LoadU(d8, row));
      // An odd last tap's partner weighs nothing; any row will do.
      const auto b = hn::PromoteTo(d16, hn::LoadU(d8, 2 * p + 1 < taps ? row + stride : row));
      lower.add(d32, hn::InterleaveLower(d16, a, b), high, low);
      upper.add(d32, hn::InterleaveUpper(d16, a, b), high, low);
    }
    const auto both = hn::ReorderDemote2To(d16, lower.total(d32), upper.total(d32));
    hn::StoreU(hn::DemoteTo(d8, both), d8, out + x);
  }
}

void Vertical(const std::uint8_t* in, std::size_t stride, int taps, const TapPair* weights, std::size_t bytes,
              std::uint8_t* out) {
  if (taps <= 2) return VerticalOf<1>(in, stride, taps, weights, bytes, out);
  if (taps <= 4) return VerticalOf<2>(in, stride, taps, weights, bytes, out);
  VerticalOf<0>(in, stride, taps, weights, bytes, out);
}

void StoreRgb(const std::uint8_t* pixels, int count, std::uint8_t* out) {
  const hn::CappedTag<std::uint8_t, 16> d8;
  alignas(16) static constexpr std::uint8_t kPack[16] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 128, 128, 128, 128};
  const auto pack = hn::Load(d8, kPack);
  int i = 0;
  for (; i + 6 <= count; i += 4)  // each store writes 16 bytes, 12 of them to stay
    hn::StoreU(hn::TableLookupBytesOr0(hn::LoadU(d8, pixels + i * 4), pack), d8, out + i * 3);
  plain::store_rgb(pixels + i * 4, count - i, out + i * 3);
}

// The chain of a NormalizerChannel, held in registers.
template <class DF>
struct Chain {
  using V = hn::Vec<DF>;
  const V scale, scale_rest, mean, inverse, inverse_rest;

  explicit HWY_INLINE Chain(const NormalizerChannel& c)
      : scale(hn::Set(DF(), c.scale)),
        scale_rest(hn::Set(DF(), c.scale_rest)),
        mean(hn::Set(DF(), c.mean)),
        inverse(hn::Set(DF(), c.inverse)),
        inverse_rest(hn::Set(DF(), c.inverse_rest)) {}

  template <class V32>
  HWY_INLINE V operator()(V32 bytes) const {
    const V v = hn::ConvertTo(DF(), bytes);
    const V centered = hn::Sub(hn::MulAdd(v, scale, hn::Mul(v, scale_rest)), mean);
    return hn::MulAdd(centered, inverse, hn::Mul(centered, inverse_rest));
  }
};

int StoreWholeVectors(const std::uint8_t* HWY_RESTRICT pixels, int count, const Normalizer& normalizer,
                      float* HWY_RESTRICT red, float* HWY_RESTRICT green, float* HWY_RESTRICT blue) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Repartition<std::uint8_t, decltype(d)> d8;
  const hn::RebindToFloat<decltype(d)> df;
  const Chain<decltype(df)> r(normalizer.channel[0]);
  const Chain<decltype(df)> g(normalizer.channel[1]);
  const Chain<decltype(df)> b(normalizer.channel[2]);
  const auto byte = hn::Set(d, 255);
  const int step = static_cast<int>(hn::Lanes(d));
  int i = 0;
  for (; i + step <= count; i += step) {
    const auto rgbx = hn::BitCast(d, hn::LoadU(d8, pixels + i * 4));
    hn::StoreU(r(hn::And(rgbx, byte)), df, red + i);
    hn::StoreU(g(hn::And(hn::ShiftRight<8>(rgbx), byte)), df, green + i);
    hn::StoreU(b(hn::And(hn::ShiftRight<16>(rgbx), byte)), df, blue + i);
  }
  return i;
}

void StorePlanes(const std::uint8_t* pixels, int count, const Normalizer& normalizer, float* red, float* green,
                 float* blue) {
  const int i = normalizer.arithmetic ? StoreWholeVectors(pixels, count, normalizer, red, green, blue) : 0;
  plain::store_planes(pixels + i * 4, count - i, normalizer, red + i, green + i, blue + i);
}

#endif  // vectors

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace stoker::feed::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::feed {

HWY_EXPORT(Horizontal);
HWY_EXPORT(Vertical);
HWY_EXPORT(StoreRgb);
HWY_EXPORT(StorePlanes);
HWY_EXPORT(TargetName);

void resize_horizontal(const std::uint8_t* in, std::size_t in_stride, int rows, const Axis& axis, std::uint8_t* out,
                       std::size_t out_stride) {
  HWY_DYNAMIC_DISPATCH(Horizontal)(in, in_stride, rows, axis, out, out_stride);
}
void resize_vertical(const std::uint8_t* in, std::size_t stride, int taps, const TapPair* weights, std::size_t bytes,
                     std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Vertical)(in, stride, taps, weights, bytes, out);
}
void store_rgb(const std::uint8_t* pixels, int count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(StoreRgb)(pixels, count, out);
}
void store_planes(const std::uint8_t* pixels, int count, const Normalizer& normalizer, float* red, float* green,
                  float* blue) {
  HWY_DYNAMIC_DISPATCH(StorePlanes)(pixels, count, normalizer, red, green, blue);
}
const char* kernel_target() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }
std::int64_t kernel_targets() { return HWY_TARGETS; }

}  // namespace stoker::feed
#endif  // HWY_ONCE
