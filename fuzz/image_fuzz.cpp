// Any bytes: open() and render() answer, within the pixel limit, without a fault.
//
// The last four bytes choose the crop, the size and the filter, so that a real picture is a seed as it is.
// Start it with the test pictures:  image_fuzz CORPUS tests/data/images
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "stoker/feed/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::feed;
  std::array<std::uint8_t, 4> choice{};
  for (std::size_t i = 0; i < choice.size() && i < size; ++i) choice[i] = data[size - 1 - i];

  DecoderOptions options;
  options.max_pixels = 1u << 20;
  options.exif = (choice[0] & 1) != 0 ? ExifPolicy::kApply : ExifPolicy::kIgnore;
  ImageDecoder decoder(options);
  const auto info = decoder.open(std::as_bytes(std::span(data, size)));
  if (!info) return 0;
  if ((choice[0] & 2) != 0) {
    (void)decoder.rgb();
    return 0;
  }

  Geometry geometry;
  geometry.crop = {info->width * (choice[1] & 15) / 17, info->height * (choice[1] >> 4) / 17, 0, 0};
  geometry.crop.width = 1 + (info->width - geometry.crop.left - 1) * (choice[2] & 15) / 15;
  geometry.crop.height = 1 + (info->height - geometry.crop.top - 1) * (choice[2] >> 4) / 15;
  geometry.width = 1 + choice[3];
  geometry.height = 1 + (choice[3] ^ choice[2]);
  geometry.window = {-3, 2, geometry.width, geometry.height};
  geometry.mirror = (choice[0] & 4) != 0;
  geometry.interpolation = static_cast<Interpolation>((choice[0] >> 4) % 3);
  PixelOptions pixels;
  pixels.type = (choice[0] & 8) != 0 ? PixelType::kUint8Nhwc : PixelType::kFloat32Nchw;
  std::vector<float> out(static_cast<std::size_t>(geometry.width * geometry.height) * 3);
  (void)decoder.render(geometry, pixels, out.data());
  return 0;
}
