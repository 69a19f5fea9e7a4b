// The 256 float values a byte can become, and a fast chain of operations that is proved to give the same ones.
#pragma once

#include "feed/image/kernels.h"

namespace stoker::feed {

Normalizer make_normalizer(const PixelOptions& options);

}  // namespace stoker::feed
