#include <array>

#include "feed/image/codec.h"
#include "feed/image/orient.h"
#include "feed/image/renderer.h"

namespace stoker::feed {
namespace {

std::unique_ptr<Codec> make_codec(ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg:
      return make_jpeg_codec();
    case ImageFormat::kPng:
      return make_png_codec();
    case ImageFormat::kWebp:
      return make_webp_codec();
    case ImageFormat::kBmp:
      return make_bmp_codec();
    case ImageFormat::kGif:
      return make_gif_codec();
    case ImageFormat::kOther:
      break;
  }
  return nullptr;
}

// The whole picture as RGB.
class RgbSink final : public RowSink {
 public:
  RgbSink(int width, std::vector<std::uint8_t>& out) : width_(width), out_(out) {}
  void rows(int first, int count, const std::uint8_t* pixels, std::size_t stride) override {
    const std::size_t row = static_cast<std::size_t>(width_) * 3;
    for (int i = 0; i < count; ++i)
      store_rgb(pixels + static_cast<std::size_t>(i) * stride, width_,
                out_.data() + static_cast<std::size_t>(first + i) * row);
  }

 private:
  const int width_;
  std::vector<std::uint8_t>& out_;
};

}  // namespace

struct ImageDecoder::State {
  explicit State(DecoderOptions o) : options(o) {}

  Result<ImageInfo> open(std::span<const std::byte> file);
  Status decode(const IntBox& shown, RowSink& sink);
  int denominator(const Geometry& geometry) const;
  Status check_open() const;

  const DecoderOptions options;
  std::array<std::unique_ptr<Codec>, 5> codecs;  // by format, made when first needed
  Codec* codec = nullptr;                        // of the open file
  ImageInfo info;                                // as shown
  int turn = 1;                                  // the orientation to apply
  Renderer renderer;
};

Result<ImageInfo> ImageDecoder::State::open(std::span<const std::byte> file) {
  codec = nullptr;
  const Bytes bytes = as_bytes(file);
  if (bytes.empty()) return Error{ErrorCode::kBadInput, "the file is empty (0 bytes)", "fetch it again or remove it"};
  const ImageFormat format = detect(bytes);
  if (format == ImageFormat::kOther) return not_decoded(bytes);
  std::unique_ptr<Codec>& chosen = codecs[static_cast<std::size_t>(format)];
  if (chosen == nullptr) chosen = make_codec(format);
  Result<ImageInfo> read = chosen->open(bytes);
  if (!read) return read;

  const std::uint64_t pixels = static_cast<std::uint64_t>(read->width) * static_cast<std::uint64_t>(read->height);
  if (pixels > options.max_pixels)
    return Error{ErrorCode::kBadInput,
                 "the header says " + std::to_string(read->width) + "x" + std::to_string(read->height) + " = " +
                     std::to_string(pixels) + " pixels, over the limit of " + std::to_string(options.max_pixels),
                 "if the picture is honest, scale it down before training"};
  info = *read;
  turn = options.exif == ExifPolicy::kApply ? info.exif_orientation : 1;
  if (swaps_sides(turn)) std::swap(info.width, info.height);
  codec = chosen.get();
  return info;
}

// The denominator at which the crop still has all the pixels that the result needs.
int ImageDecoder::State::denominator(const Geometry& geometry) const {
  if (options.fidelity == Fidelity::kExact || turn != 1 || geometry.interpolation == Interpolation::kNearest) return 1;
  int chosen = 1;
  for (const int d : {2, 4, 8})
    if (geometry.crop.width / d >= geometry.width && geometry.crop.height / d >= geometry.height) chosen = d;
  return chosen;
}

Status ImageDecoder::State::check_open() const {
  if (codec != nullptr) return {};
  return Error{ErrorCode::kBadInput, "no picture is open in this decoder"};
}

Status ImageDecoder::State::decode(const IntBox& shown, RowSink& sink) {
  if (turn == 1) return codec->decode(shown, sink);
  const bool swap = swaps_sides(turn);
  const IntBox stored = stored_box(shown, turn, swap ? info.height : info.width, swap ? info.width : info.height);
  Turner turner(stored, turn);
  STOKER_TRY(codec->decode(stored, turner));
  turner.give(sink);
  return {};
}

ImageDecoder::ImageDecoder(DecoderOptions options) : state_(std::make_unique<State>(options)) {}
ImageDecoder::~ImageDecoder() = default;
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;

Result<ImageInfo> ImageDecoder::open(std::span<const std::byte> file) { return state_->open(file); }

Status ImageDecoder::render(const Geometry& geometry, const PixelOptions& pixels, void* out) {
  State& s = *state_;
  STOKER_TRY(s.check_open());
  int denominator = s.denominator(geometry);
  if (!s.codec->shrink(denominator)) denominator = 1;
  const Picture picture{s.info.width, s.info.height, denominator};
  const Result<IntBox> box = s.renderer.plan(geometry, pixels, s.options.arithmetic, picture, out);
  if (!box) return box.error();
  return s.decode(*box, s.renderer);
}

Result<std::vector<std::uint8_t>> ImageDecoder::rgb() {
  State& s = *state_;
  STOKER_TRY(s.check_open());
  std::vector<std::uint8_t> out(static_cast<std::size_t>(s.info.width) * static_cast<std::size_t>(s.info.height) * 3);
  (void)s.codec->shrink(1);
  RgbSink sink(s.info.width, out);
  STOKER_TRY(s.decode({0, 0, s.info.width, s.info.height}, sink));
  return out;
}

}  // namespace stoker::feed
