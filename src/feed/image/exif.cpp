#include "feed/image/exif.h"

namespace stoker::feed {
namespace {

constexpr std::uint16_t kOrientationTag = 0x0112;
constexpr std::uint16_t kShort = 3;
constexpr std::size_t kEntryBytes = 12;

int valid(unsigned value) { return value >= 1 && value <= 8 ? static_cast<int>(value) : 0; }

}  // namespace

int exif_orientation(Bytes tiff) {
  using namespace std::string_view_literals;
  if (starts_with(tiff, "Exif\0\0"sv)) tiff = tiff.subspan(6);
  if (tiff.size() < 8) return 0;
  const bool little = starts_with(tiff, "II");
  if (!little && !starts_with(tiff, "MM")) return 0;
  const auto u16 = [&](std::size_t at) { return little ? le16(&tiff[at]) : be16(&tiff[at]); };
  const auto u32 = [&](std::size_t at) { return little ? le32(&tiff[at]) : be32(&tiff[at]); };

  const std::size_t directory = u32(4);
  if (directory > tiff.size() - 2) return 0;
  const std::size_t entries = u16(directory);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + i * kEntryBytes;
    if (at + kEntryBytes > tiff.size()) return 0;
    if (u16(at) == kOrientationTag && u16(at + 2) == kShort) return valid(u16(at + 8));
  }
  return 0;
}

int xmp_orientation(Bytes xmp) {
  constexpr std::string_view kKey = "tiff:Orientation";
  const std::string_view text = as_text(xmp);
  for (std::size_t at = text.find(kKey); at != std::string_view::npos; at = text.find(kKey, at + 1)) {
    std::string_view rest = text.substr(at + kKey.size());
    const std::size_t skip = rest.starts_with("=\"") ? 2 : rest.starts_with(">") ? 1 : 0;
    if (skip != 0 && rest.size() > skip) return valid(static_cast<unsigned>(rest[skip] - '0'));
  }
  return 0;
}

int orientation(Bytes exif, Bytes xmp) {
  if (const int value = exif_orientation(exif)) return value;
  const int value = xmp_orientation(xmp);
  return value != 0 ? value : 1;
}

}  // namespace stoker::feed
