// The text of a trace, piece by piece: a plain file, or a gzip one inflated on a thread of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "stoker/base/files.h"
#include "stoker/base/status.h"

namespace stoker::watch::kineto {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // The next piece; an empty one at the end, where the bytes after which nothing more can be read also count as the
  // end. Blocks. Errors: kIo.
  virtual Result<std::string> next() = 0;
  // After the end: what cut it short, or "".
  virtual std::string damage() const { return {}; }
};

// Errors: kBadInput (empty, another kind of archive), kIo.
Result<std::unique_ptr<ByteSource>> open_source(std::unique_ptr<ReadableFile> file, const std::string& shown_name);

}  // namespace stoker::watch::kineto
