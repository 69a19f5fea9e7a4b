// A JPEG's markers up to the first scan, read as Pillow reads them, so that what Pillow refuses there is refused here.
#pragma once

#include "feed/image/bytes.h"
#include "stoker/feed/image.h"

namespace stoker::feed {

// Errors: kCorrupt; kUnsupported for 12-bit, lossless and other kinds that no 8-bit decoder takes.
Result<ImageInfo> read_jpeg_header(Bytes file);

// True when the entropy-coded data that start at `scan` run, over restart markers only, into an end-of-image marker:
// then a decoder cannot run dry in them.
bool scan_ends_in_eoi(Bytes scan);

}  // namespace stoker::feed
