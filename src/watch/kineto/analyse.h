// read_kineto() behind the file: the text may come from anywhere.
#pragma once

#include "stoker/watch/kineto.h"
#include "watch/kineto/source.h"

namespace stoker::watch::kineto {

// `file` is the name that the answer carries. Errors: kBadInput (no trace), kIo, kCancelled.
Result<KinetoRank> analyse(ByteSource& source, const std::filesystem::path& file, std::int64_t place,
                           const KinetoOptions& options);

}  // namespace stoker::watch::kineto
