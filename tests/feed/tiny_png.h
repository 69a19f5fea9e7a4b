// A whole PNG file of RGB pixels, uncompressed: real input for tests that want pictures of a known content.
#pragma once

#include <cstdint>
#include <string>

namespace stoker::testing {

// Pixel (x, y) is (red, x, y), so that a picture tells who it is and where a crop was taken.
std::string tiny_png(int width, int height, std::uint8_t red);

}  // namespace stoker::testing
