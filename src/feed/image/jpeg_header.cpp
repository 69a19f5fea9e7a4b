#include "feed/image/jpeg_header.h"

#include <cstring>

#include "feed/image/codec.h"
#include "feed/image/exif.h"

namespace stoker::feed {
namespace {

enum Marker : std::uint8_t {
  kRst0 = 0xd0,
  kRst7 = 0xd7,
  kEoi = 0xd9,
  kSos = 0xda,
  kDqt = 0xdb,
  kApp1 = 0xe1,
};

bool is_frame(std::uint8_t marker) {
  return (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) || marker == 0xde;
}
// A frame kind that libjpeg-turbo decodes: Huffman or arithmetic, sequential or progressive, eight bits.
bool is_decodable(std::uint8_t marker) { return marker <= 0xc2 || marker == 0xc9 || marker == 0xca; }
bool is_known(std::uint8_t marker) { return marker >= 0xc0 && marker != 0xff; }
bool has_segment(std::uint8_t marker) {
  return !(marker == 0xc8 || (marker >= kRst0 && marker <= kEoi) || (marker >= 0xf0 && marker <= 0xfd));
}

class HeaderReader {
 public:
  explicit HeaderReader(Bytes file) : file_(file) {}

  Result<ImageInfo> read() {
    using namespace std::string_literals;
    while (at_ + 1 < file_.size()) {
      if (file_[at_] != 0xff) {  // junk between segments
        ++at_;
        continue;
      }
      const std::uint8_t marker = file_[at_ + 1];
      if (marker == 0xff || marker == 0x00) {  // padding, or a stuffed byte that has no place here
        at_ += marker == 0xff ? 1 : 2;
        continue;
      }
      if (!is_known(marker)) return corrupt("no JPEG marker where one is due, at offset " + std::to_string(at_));
      at_ += 2;
      if (has_segment(marker)) STOKER_TRY(segment(marker));
      if (marker == kSos) return finish();
    }
    return corrupt("the JPEG ends in its header, after " + std::to_string(file_.size()) + " bytes");
  }

 private:
  Status segment(std::uint8_t marker) {
    if (at_ + 2 > file_.size()) return corrupt("the JPEG is cut in its header");
    const std::size_t length = be16(&file_[at_]);
    const std::size_t body = length < 2 ? 0 : length - 2;
    if (at_ + 2 + body > file_.size())
      return corrupt("the JPEG is cut in its header: a segment of " + std::to_string(body) + " bytes at offset " +
                     std::to_string(at_) + " has " + std::to_string(file_.size() - at_ - 2));
    const Bytes bytes = file_.subspan(at_ + 2, body);
    at_ += 2 + body;
    if (is_frame(marker)) return frame(marker, bytes);
    if (marker == kDqt) return quantization(bytes);
    if (marker == kApp1) application(bytes);
    return {};
  }

  Status frame(std::uint8_t marker, Bytes bytes) {
    if (bytes.size() < 6) return corrupt("the JPEG's frame header is cut");
    if (bytes[0] != 8) return unsupported("a JPEG of " + std::to_string(bytes[0]) + " bits a sample");
    if (!is_decodable(marker)) return unsupported("a lossless or hierarchical JPEG");
    info_.height = be16(&bytes[1]);
    info_.width = be16(&bytes[3]);
    info_.channels = bytes[5];
    if (info_.channels != 1 && info_.channels != 3 && info_.channels != 4)
      return unsupported("a JPEG of " + std::to_string(info_.channels) + " components");
    return {};
  }

  static Status quantization(Bytes bytes) {
    while (!bytes.empty()) {
      const std::size_t size = bytes[0] < 16 ? 65 : 129;
      if (bytes.size() < size) return corrupt("the JPEG's quantisation table is cut");
      bytes = bytes.subspan(size);
    }
    return {};
  }

  void application(Bytes bytes) {
    using namespace std::string_view_literals;
    constexpr std::string_view kXmp = "http://ns.adobe.com/xap/1.0/\0"sv;
    if (starts_with(bytes, "Exif\0\0"sv) && exif_.empty()) exif_ = bytes;
    if (starts_with(bytes, kXmp)) xmp_ = bytes.subspan(kXmp.size());
  }

  Result<ImageInfo> finish() {
    if (info_.width == 0 || info_.height == 0)
      return corrupt("the JPEG says it is " + std::to_string(info_.width) + "x" + std::to_string(info_.height) +
                     " pixels");
    info_.format = ImageFormat::kJpeg;
    info_.exif_orientation = orientation(exif_, xmp_);
    return info_;
  }

  const Bytes file_;
  std::size_t at_ = 2;
  ImageInfo info_;
  Bytes exif_;
  Bytes xmp_;
};

}  // namespace

Result<ImageInfo> read_jpeg_header(Bytes file) { return HeaderReader(file).read(); }

ScanEnd scan_end(Bytes scan) {
  ScanEnd end_kind = ScanEnd::kPlain;
  const std::uint8_t* at = scan.data();
  const std::uint8_t* const end = at + scan.size();
  while (end - at >= 2) {
    at = static_cast<const std::uint8_t*>(std::memchr(at, 0xff, static_cast<std::size_t>(end - at - 1)));
    if (at == nullptr) break;
    const std::uint8_t next = at[1];
    if (next == kEoi) return end_kind;
    if (next == 0xff) {
      ++at;
      end_kind = ScanEnd::kFilled;
    } else if (next == 0x00 || (next >= kRst0 && next <= kRst7)) {
      at += 2;
    } else {
      break;
    }
  }
  return ScanEnd::kUnknown;
}

}  // namespace stoker::feed
