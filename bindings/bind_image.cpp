// The image room as the tests see it: one file's bytes in, pixels out.
#include <nanobind/stl/array.h>

#include "convert.h"
#include "stoker/feed/image.h"

namespace stoker::python {
namespace {

using Box = std::array<int, 4>;  // left, top, width, height

std::span<const std::byte> view(const nb::bytes& data) {
  return {static_cast<const std::byte*>(data.data()), data.size()};
}
feed::IntBox to_box(const Box& box) { return {box[0], box[1], box[2], box[3]}; }

feed::Interpolation to_interpolation(std::string_view name) {
  if (name == "nearest") return feed::Interpolation::kNearest;
  if (name == "bilinear") return feed::Interpolation::kBilinear;
  if (name == "bicubic") return feed::Interpolation::kBicubic;
  throw ErrorException{{ErrorCode::kBadInput, "no interpolation is called '" + std::string(name) + "'",
                        "use nearest, bilinear or bicubic"}};
}

feed::ImageDecoder make_decoder(bool exif_apply, int arithmetic = 13, bool fast = false) {
  feed::DecoderOptions options;
  if (exif_apply) options.exif = feed::ExifPolicy::kApply;
  if (fast) options.fidelity = feed::Fidelity::kFast;
  options.arithmetic = arithmetic >= 13 ? feed::Arithmetic::kPillow13 : feed::Arithmetic::kPillow12;
  return feed::ImageDecoder(options);
}

nb::dict image_info(const nb::bytes& data) {
  feed::ImageDecoder decoder = make_decoder(false);
  const feed::ImageInfo info = unwrap(decoder.open(view(data)));
  nb::dict dict;
  dict["format"] = feed::name(info.format);
  dict["width"] = info.width;
  dict["height"] = info.height;
  dict["channels"] = info.channels;
  dict["bits"] = info.bits;
  dict["exif_orientation"] = info.exif_orientation;
  return dict;
}

nb::tuple decode_rgb(const nb::bytes& data, bool exif_apply) {
  feed::ImageInfo info;
  std::vector<std::uint8_t> pixels;
  {
    const nb::gil_scoped_release release;
    feed::ImageDecoder decoder = make_decoder(exif_apply);
    info = unwrap(decoder.open(view(data)));
    pixels = unwrap(decoder.rgb());
  }
  return nb::make_tuple(info.height, info.width, nb::bytes(pixels.data(), pixels.size()));
}

nb::bytes render_image(const nb::bytes& data, const Box& crop, const std::array<int, 2>& size, const Box& window,
                       bool mirror, std::string_view interpolation, int arithmetic, bool float32,
                       const std::array<float, 3>& mean, const std::array<float, 3>& std, bool multiply,
                       bool exif_apply, bool fast) {
  const feed::Geometry geometry{to_box(crop),   size[0], size[1],
                                to_box(window), mirror,  to_interpolation(interpolation)};
  feed::PixelOptions pixels;
  pixels.type = float32 ? feed::PixelType::kFloat32Nchw : feed::PixelType::kUint8Nhwc;
  pixels.unit_scale = multiply ? feed::UnitScale::kMultiply : feed::UnitScale::kDivide;
  pixels.mean = mean;
  pixels.stddev = std;
  const std::size_t values = static_cast<std::size_t>(window[2]) * static_cast<std::size_t>(window[3]) * 3;
  std::vector<std::byte> out(values * (float32 ? sizeof(float) : 1));
  {
    const nb::gil_scoped_release release;
    feed::ImageDecoder decoder = make_decoder(exif_apply, arithmetic, fast);
    unwrap(decoder.open(view(data)).status());
    unwrap(decoder.render(geometry, pixels, out.data()));
  }
  return nb::bytes(out.data(), out.size());
}

}  // namespace

void bind_image(nb::module_& m) {
  m.def("image_info", &image_info, nb::arg("data"));
  m.def("decode_rgb", &decode_rgb, nb::arg("data"), nb::arg("exif_apply") = false);
  m.def("render_image", &render_image, nb::arg("data"), nb::arg("crop"), nb::arg("size"), nb::arg("window"),
        nb::arg("mirror") = false, nb::arg("interpolation") = "bilinear", nb::arg("arithmetic") = 13,
        nb::arg("float32") = false, nb::arg("mean") = std::array<float, 3>{0, 0, 0},
        nb::arg("std") = std::array<float, 3>{1, 1, 1}, nb::arg("multiply") = false, nb::arg("exif_apply") = false,
        nb::arg("fast") = false);
}

}  // namespace stoker::python
