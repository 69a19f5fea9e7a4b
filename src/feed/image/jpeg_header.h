// A JPEG's markers up to the first scan, read as Pillow reads them, so that what Pillow refuses there is refused here.
#pragma once

#include "feed/image/bytes.h"
#include "stoker/feed/image.h"

namespace stoker::feed {

// Errors: kCorrupt; kUnsupported for 12-bit, lossless and other kinds that no 8-bit decoder takes.
Result<ImageInfo> read_jpeg_header(Bytes file);

// Where the entropy-coded data that start at `scan` lead to.
enum class ScanEnd {
  kUnknown,  // not, over restart markers only, into an end-of-image marker: a decoder may run dry
  kFilled,   // there, but with fill bytes (ff ff) on the way
  kPlain,    // there
};
ScanEnd scan_end(Bytes scan);

}  // namespace stoker::feed
