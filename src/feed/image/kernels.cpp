#include "feed/image/kernels.h"

#include <cstring>

// Five x86 targets would be compiled one after another; these two bring nothing to 8- and 16-bit integers.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "feed/image/kernels.cpp"
#include <hwy/foreach_target.h>
// Highway's own order: foreach_target first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::feed::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

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

  explicit HWY_INLINE Sums(D32 d) : high(hn::Zero(d)), high_rest(high), low(high), low_rest(high) {}

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

HWY_INLINE std::int32_t as_int32(const std::int16_t (&pair)[2]) {
  std::int32_t both;
  std::memcpy(&both, pair, sizeof both);
  return both;
}

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
HWY_INLINE void store_rows(D8 d, hn::Vec<D8> pixels, std::uint8_t* at, std::size_t stride) {
  alignas(64) std::uint8_t bytes[hn::MaxLanes(d)];
  hn::Store(pixels, d, bytes);
  for (std::size_t row = 0; row < hn::MaxLanes(d) / 8; ++row) std::memcpy(at + row * stride, bytes + row * 8, 8);
}

template <class D8>
class RowGroup {
  static constexpr D8 d8{};
  static constexpr hn::Repartition<std::int16_t, D8> d16{};
  static constexpr hn::Repartition<std::int32_t, D8> d32{};
  using V8 = hn::Vec<D8>;

 public:
  static constexpr int kRows = static_cast<int>(hn::MaxLanes(d8) / 16);

  // All outputs of kRows rows, two at a time.
  static HWY_INLINE void run(const std::uint8_t* in, std::size_t in_stride, const Axis& axis, std::uint8_t* out,
                             std::size_t out_stride) {
    const std::size_t pairs = static_cast<std::size_t>(axis.pairs);
    const hn::Half<decltype(d8)> half8;
    const TapPair* weights = axis.weight.data();
    for (int x = 0; x < axis.count; x += 2) {
      const bool last = x + 1 == axis.count;
      const auto a = output(in + axis.start[static_cast<std::size_t>(x)] * 4, in_stride, weights, pairs);
      if (!last) weights += pairs;
      const auto b = output(in + axis.start[static_cast<std::size_t>(x + !last)] * 4, in_stride, weights, pairs);
      weights += pairs;
      // Blocks stay apart: each row's two outputs come to lie side by side.
      store_rows(half8, hn::DemoteTo(half8, hn::ReorderDemote2To(d16, a, b)), out + x * 4, out_stride);
    }
  }

 private:
  static HWY_INLINE hn::Vec<decltype(d32)> output(const std::uint8_t* in, std::size_t in_stride, const TapPair* weights,
                                                  std::size_t pairs) {
    Sums<decltype(d32)> sums(d32);
    std::size_t p = 0;
    for (; p + 2 <= pairs; p += 2) {
      const V8 pixels = load_rows(d8, in + p * 8, in_stride);
      add(sums, hn::TableLookupBytesOr0(pixels, first_pair()), weights[p]);
      add(sums, hn::TableLookupBytesOr0(pixels, second_pair()), weights[p + 1]);
    }
    if (p < pairs) add(sums, hn::TableLookupBytesOr0(load_rows(d8, in + p * 8, in_stride), first_pair()), weights[p]);
    return sums.total(d32);
  }

  static HWY_INLINE void add(Sums<decltype(d32)>& sums, V8 pixels, const TapPair& weight) {
    sums.add(d32, hn::BitCast(d16, pixels), hn::BitCast(d16, hn::Set(d32, as_int32(weight.high))),
             hn::BitCast(d16, hn::Set(d32, as_int32(weight.low))));
  }

  // Two pixels' bytes as 16-bit numbers, channel by channel: r0 r1 g0 g1 b0 b1 x0 x1.
  static HWY_INLINE V8 first_pair() {
    alignas(16) static constexpr std::uint8_t k[16] = {0, 128, 4, 128, 1, 128, 5, 128, 2, 128, 6, 128, 3, 128, 7, 128};
    return hn::LoadDup128(d8, k);
  }
  static HWY_INLINE V8 second_pair() {
    alignas(16) static constexpr std::uint8_t k[16] = {8,  128, 12, 128, 9,  128, 13, 128,
                                                       10, 128, 14, 128, 11, 128, 15, 128};
    return hn::LoadDup128(d8, k);
  }
};

void Horizontal(const std::uint8_t* in, std::size_t in_stride, int rows, const Axis& axis, std::uint8_t* out,
                std::size_t out_stride) {
  using Wide = RowGroup<hn::ScalableTag<std::uint8_t> >;
  using Single = RowGroup<hn::CappedTag<std::uint8_t, 16> >;
  int y = 0;
  for (; y + Wide::kRows <= rows; y += Wide::kRows)
    Wide::run(in + static_cast<std::size_t>(y) * in_stride, in_stride, axis,
              out + static_cast<std::size_t>(y) * out_stride, out_stride);
  for (; y < rows; ++y)
    Single::run(in + static_cast<std::size_t>(y) * in_stride, in_stride, axis,
                out + static_cast<std::size_t>(y) * out_stride, out_stride);
}

void Vertical(const std::uint8_t* in, std::size_t stride, int taps, const TapPair* weights, std::size_t bytes,
              std::uint8_t* out) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  const hn::RepartitionToWide<decltype(d16)> d32;
  for (std::size_t x = 0; x < bytes; x += hn::Lanes(d16)) {
    Sums<decltype(d32)> lower(d32);
    Sums<decltype(d32)> upper(d32);
    const std::uint8_t* row = in + x;
    for (int tap = 0; tap < taps; tap += 2, row += 2 * stride) {
      const TapPair& weight = weights[tap / 2];
      const auto high = hn::BitCast(d16, hn::Set(d32, as_int32(weight.high)));
      const auto low = hn::BitCast(d16, hn::Set(d32, as_int32(weight.low)));
      const auto a = hn::PromoteTo(d16, hn::LoadU(d8, row));
      // The odd tap's partner weighs nothing; any row will do.
      const auto b = hn::PromoteTo(d16, hn::LoadU(d8, tap + 1 < taps ? row + stride : row));
      lower.add(d32, hn::InterleaveLower(d16, a, b), high, low);
      upper.add(d32, hn::InterleaveUpper(d16, a, b), high, low);
    }
    const auto both = hn::ReorderDemote2To(d16, lower.total(d32), upper.total(d32));
    hn::StoreU(hn::DemoteTo(d8, both), d8, out + x);
  }
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

// One channel of a vector of pixels through the chain of a NormalizerChannel.
template <class D32, class V32>
HWY_INLINE hn::Vec<hn::RebindToFloat<D32> > Normalize(D32 d, V32 pixels, const NormalizerChannel& c) {
  const hn::RebindToFloat<D32> df;
  const auto v = hn::ConvertTo(df, hn::And(pixels, hn::Set(d, 255)));
  const auto unit = hn::MulAdd(v, hn::Set(df, c.scale), hn::Mul(v, hn::Set(df, c.scale_rest)));
  const auto centered = hn::Sub(unit, hn::Set(df, c.mean));
  return hn::MulAdd(centered, hn::Set(df, c.inverse), hn::Mul(centered, hn::Set(df, c.inverse_rest)));
}

void StorePlanes(const std::uint8_t* pixels, int count, const Normalizer& normalizer, float* red, float* green,
                 float* blue) {
  int i = 0;
  if (normalizer.arithmetic) {
    const hn::ScalableTag<std::int32_t> d;
    const hn::Repartition<std::uint8_t, decltype(d)> d8;
    const hn::RebindToFloat<decltype(d)> df;
    const int step = static_cast<int>(hn::Lanes(d));
    for (; i + step <= count; i += step) {
      const auto rgbx = hn::BitCast(d, hn::LoadU(d8, pixels + i * 4));
      hn::StoreU(Normalize(d, rgbx, normalizer.channel[0]), df, red + i);
      hn::StoreU(Normalize(d, hn::ShiftRight<8>(rgbx), normalizer.channel[1]), df, green + i);
      hn::StoreU(Normalize(d, hn::ShiftRight<16>(rgbx), normalizer.channel[2]), df, blue + i);
    }
  }
  plain::store_planes(pixels + i * 4, count - i, normalizer, red + i, green + i, blue + i);
}

#endif  // HWY_SCALAR

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
