// The one tag of EXIF that changes how a picture is shown.
#pragma once

#include "feed/image/bytes.h"

namespace stoker::feed {

// Tag 0x0112 of IFD 0 in `tiff` (which starts with "II" or "MM"; a leading "Exif\0\0" is skipped), 1 to 8; 0 when it
// is not there or not readable. Reads each entry once, so loops in the file cannot hold it.
int exif_orientation(Bytes tiff);

// `tiff:Orientation` in an XMP packet; 0 when it is not there. Pillow asks it where EXIF has no answer.
int xmp_orientation(Bytes xmp);

// The answer of the two, 1 when neither has one.
int orientation(Bytes exif, Bytes xmp);

}  // namespace stoker::feed
