// The first frame of a GIF through giflib, on a canvas as Pillow makes it.
#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "feed/image/codec.h"

namespace stoker::feed {
namespace {

constexpr std::size_t kScreenBytes = 13;

struct FileDeleter {
  void operator()(GifFileType* file) const { DGifCloseFile(file, nullptr); }
};

class GifCodec final : public Codec {
 public:
  Result<ImageInfo> open(Bytes file) override {
    file_ = file;
    if (file.size() < kScreenBytes) return corrupt("the GIF is cut in its header");
    STOKER_TRY(seek_first_frame());
    const GifImageDesc& frame = gif_->Image;
    header_.format = ImageFormat::kGif;
    // Pillow lets a frame that is larger than the screen widen it.
    header_.width = std::max<int>(le16(&file[6]), frame.Left + frame.Width);
    header_.height = std::max<int>(le16(&file[8]), frame.Top + frame.Height);
    header_.channels = 3;
    gif_.reset();
    if (le16(&file[6]) == 0 || le16(&file[8]) == 0 || header_.width <= 0 || header_.height <= 0)
      return corrupt("the GIF says it is " + std::to_string(header_.width) + "x" + std::to_string(header_.height) +
                     " pixels");
    return header_;
  }

  Status decode(const IntBox& box, RowSink& sink) override {
    STOKER_TRY(seek_first_frame());
    STOKER_TRY(paint());
    const ColorMapObject* palette = gif_->Image.ColorMap != nullptr ? gif_->Image.ColorMap : gif_->SColorMap;
    row_.resize(row_bytes(box.width));
    for (int y = 0; y < box.height; ++y) {
      const std::uint8_t* indices = canvas_.data() + index_of(box.left, box.top + y);
      for (int x = 0; x < box.width; ++x) put(palette, indices[x], &row_[static_cast<std::size_t>(x) * kPixelBytes]);
      sink.rows(y, 1, row_.data(), row_.size());
    }
    gif_.reset();
    return {};
  }

 private:
  static int read(GifFileType* gif, GifByteType* out, int count) {
    auto* self = static_cast<GifCodec*>(gif->UserData);
    const Bytes bytes = slice(self->file_, self->at_, static_cast<std::size_t>(std::max(count, 0)));
    std::copy(bytes.begin(), bytes.end(), out);
    self->at_ += bytes.size();
    return static_cast<int>(bytes.size());
  }

  static Error failed(int code) {
    const char* text = GifErrorString(code);
    return corrupt(std::string("the GIF does not decode: ") + (text != nullptr ? text : "unknown error"));
  }

  // Leaves gif_ behind the first image descriptor.
  Status seek_first_frame() {
    at_ = 0;
    background_ = 0;
    int code = 0;
    gif_.reset(DGifOpen(this, &GifCodec::read, &code));
    if (gif_ == nullptr) return failed(code);
    for (;;) {
      GifRecordType type = UNDEFINED_RECORD_TYPE;
      if (DGifGetRecordType(gif_.get(), &type) == GIF_ERROR) return failed(gif_->Error);
      if (type == TERMINATE_RECORD_TYPE) return corrupt("the GIF has no picture in it");
      if (type == EXTENSION_RECORD_TYPE) STOKER_TRY(extension());
      if (type == IMAGE_DESC_RECORD_TYPE) break;
    }
    if (DGifGetImageDesc(gif_.get()) == GIF_ERROR) return failed(gif_->Error);
    return {};
  }

  Status extension() {
    int kind = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif_.get(), &kind, &block) == GIF_ERROR) return failed(gif_->Error);
    if (kind == GRAPHICS_EXT_FUNC_CODE && block != nullptr && block[0] >= 4 && (block[1] & 1) != 0)
      background_ = block[4];  // the transparent index fills what the frame does not cover
    while (block != nullptr)
      if (DGifGetExtensionNext(gif_.get(), &block) == GIF_ERROR) return failed(gif_->Error);
    return {};
  }

  std::size_t index_of(int x, int y) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(header_.width) + static_cast<std::size_t>(x);
  }

  Status paint() {
    const GifImageDesc& frame = gif_->Image;
    canvas_.assign(index_of(0, header_.height), background_);
    const auto line = [&](int y) {
      return DGifGetLine(gif_.get(), canvas_.data() + index_of(frame.Left, frame.Top + y), frame.Width) != GIF_ERROR;
    };
    constexpr int kStarts[] = {0, 4, 2, 1};
    constexpr int kSteps[] = {8, 8, 4, 2};
    const int passes = frame.Interlace ? 4 : 1;
    for (int pass = 0; pass < passes; ++pass)
      for (int y = frame.Interlace ? kStarts[pass] : 0; y < frame.Height; y += frame.Interlace ? kSteps[pass] : 1)
        if (!line(y)) return failed(gif_->Error);
    return {};
  }

  static void put(const ColorMapObject* palette, int index, std::uint8_t* out) {
    if (palette == nullptr) {
      std::memset(out, index, 3);
      return;
    }
    const GifColorType color = index < palette->ColorCount ? palette->Colors[index] : GifColorType{};
    out[0] = color.Red;
    out[1] = color.Green;
    out[2] = color.Blue;
  }

  Bytes file_;
  std::size_t at_ = 0;
  ImageInfo header_;
  std::unique_ptr<GifFileType, FileDeleter> gif_;
  std::uint8_t background_ = 0;
  std::vector<std::uint8_t> canvas_;  // palette indices
  std::vector<std::uint8_t> row_;
};

}  // namespace

std::unique_ptr<Codec> make_gif_codec() { return std::make_unique<GifCodec>(); }

}  // namespace stoker::feed
