// WebP through libwebp: a still picture, or the first frame of an animation on a black canvas. Alpha is dropped.
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <vector>

#include "feed/image/codec.h"
#include "feed/image/exif.h"

namespace stoker::feed {
namespace {

struct DemuxDeleter {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
using Demuxer = std::unique_ptr<WebPDemuxer, DemuxDeleter>;

Demuxer demux(Bytes file) {
  const WebPData data{file.data(), file.size()};
  return Demuxer(WebPDemux(&data));
}

Bytes chunk(const Demuxer& demuxer, const char* fourcc) {
  WebPChunkIterator iterator;
  if (WebPDemuxGetChunk(demuxer.get(), fourcc, 1, &iterator) == 0) return {};
  const Bytes bytes{iterator.chunk.bytes, iterator.chunk.size};  // inside the file: outlives the iterator
  WebPDemuxReleaseChunkIterator(&iterator);
  return bytes;
}

class WebpCodec final : public Codec {
 public:
  Result<ImageInfo> open(Bytes file) override {
    file_ = file;
    const Demuxer demuxer = demux(file);
    if (demuxer == nullptr) return corrupt("the WebP container is damaged or cut short");
    header_.format = ImageFormat::kWebp;
    header_.width = static_cast<int>(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH));
    header_.height = static_cast<int>(WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT));
    const bool alpha = (WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG) != 0;
    header_.channels = alpha ? 4 : 3;
    header_.exif_orientation = orientation(chunk(demuxer, "EXIF"), chunk(demuxer, "XMP "));
    return header_;
  }

  Status decode(const IntBox& box, RowSink& sink) override {
    const Demuxer demuxer = demux(file_);
    WebPIterator frame;
    if (demuxer == nullptr || WebPDemuxGetFrame(demuxer.get(), 1, &frame) == 0)
      return corrupt("the WebP file has no picture in it");
    Status painted = paint(frame);
    WebPDemuxReleaseIterator(&frame);
    if (!painted) return painted;
    const std::size_t stride = static_cast<std::size_t>(header_.width) * kPixelBytes;
    sink.rows(
        0, box.height,
        canvas_.data() + static_cast<std::size_t>(box.top) * stride + static_cast<std::size_t>(box.left) * kPixelBytes,
        stride);
    return {};
  }

 private:
  Status paint(const WebPIterator& frame) {
    const std::size_t stride = static_cast<std::size_t>(header_.width) * kPixelBytes;
    if (frame.x_offset < 0 || frame.y_offset < 0 || frame.x_offset + frame.width > header_.width ||
        frame.y_offset + frame.height > header_.height)
      return corrupt("the WebP frame lies outside its canvas");
    const bool covers = frame.width == header_.width && frame.height == header_.height;
    const std::size_t size = stride * static_cast<std::size_t>(header_.height);
    canvas_.resize(size + kRowPadding);
    if (!covers) std::fill(canvas_.begin(), canvas_.end(), std::uint8_t{0});
    const std::size_t offset =
        static_cast<std::size_t>(frame.y_offset) * stride + static_cast<std::size_t>(frame.x_offset) * kPixelBytes;
    if (WebPDecodeRGBAInto(frame.fragment.bytes, frame.fragment.size, canvas_.data() + offset, size - offset,
                           static_cast<int>(stride)) == nullptr)
      return corrupt("the WebP picture does not decode");
    return {};
  }

  Bytes file_;
  ImageInfo header_;
  std::vector<std::uint8_t> canvas_;
};

}  // namespace

std::unique_ptr<Codec> make_webp_codec() { return std::make_unique<WebpCodec>(); }

}  // namespace stoker::feed
