#include <array>

#include "feed/image/codec.h"

namespace stoker::feed {
namespace {

struct Magic {
  std::string_view bytes;
  const char* what;
  bool picture = false;  // one that a converter could read
};

using namespace std::string_view_literals;

// Things that real image folders hold under an image's name.
constexpr std::array kOthers = {
    Magic{"II*\0"sv, "a TIFF image", true},
    Magic{"MM\0*"sv, "a TIFF image", true},
    Magic{"\0\0\1\0"sv, "a Windows icon", true},
    Magic{"8BPS"sv, "a Photoshop document", true},
    Magic{"\xff\x0a"sv, "a JPEG XL image", true},
    Magic{"\0\0\0\x0cJXL "sv, "a JPEG XL image", true},
    Magic{"\0\0\0\x0cjP  "sv, "a JPEG 2000 image", true},
    Magic{"%PDF"sv, "a PDF document"},
    Magic{"\x1f\x8b"sv, "gzip data"},
    Magic{"PK\3\4"sv, "a zip archive"},
    Magic{"version https://git-lfs"sv, "a git LFS pointer, not the picture itself"},
    Magic{"<svg"sv, "an SVG drawing", true},
    Magic{"<!DOCTYPE"sv, "an HTML page"},
    Magic{"<!doctype"sv, "an HTML page"},
    Magic{"<html"sv, "an HTML page"},
    Magic{"{"sv, "JSON text"},
    Magic{"\r\n\xff\xd8"sv, "a JPEG with bytes before its start"},
    Magic{"\xef\xbf\xbd"sv, "binary data that went through a text conversion"},
};

}  // namespace

const char* name(ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg:
      return "JPEG";
    case ImageFormat::kPng:
      return "PNG";
    case ImageFormat::kWebp:
      return "WebP";
    case ImageFormat::kBmp:
      return "BMP";
    case ImageFormat::kGif:
      return "GIF";
    case ImageFormat::kOther:
      break;
  }
  return "other";
}

ImageFormat detect(Bytes file) {
  if (starts_with(file, "\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (starts_with(file, "\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (starts_with(file, "RIFF") && starts_with(slice(file, 8), "WEBP")) return ImageFormat::kWebp;
  if (starts_with(file, "GIF87a") || starts_with(file, "GIF89a")) return ImageFormat::kGif;
  if (starts_with(file, "BM")) return ImageFormat::kBmp;
  return ImageFormat::kOther;
}

Error not_decoded(Bytes file) {
  Magic found{{}, "nothing known"};
  if (starts_with(slice(file, 4), "ftypavif"))
    found = {{}, "an AVIF image", true};
  else if (starts_with(slice(file, 4), "ftyp"))
    found = {{}, "a HEIF image or a video", true};
  for (const Magic& magic : kOthers)
    if (starts_with(file, magic.bytes)) found = magic;
  return Error{ErrorCode::kUnsupported, std::string("not a picture that Stoker decodes: ") + found.what,
               found.picture ? "convert it to PNG or JPEG" : "fetch the real file again, or remove this one"};
}

}  // namespace stoker::feed
