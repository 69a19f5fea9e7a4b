// A kineto text in pieces of one size, so that every place may be a window's end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "stoker/base/status.h"
#include "watch/kineto/source.h"

namespace stoker::testing {

class PieceSource final : public watch::kineto::ByteSource {
 public:
  explicit PieceSource(std::string text, std::size_t piece = 64) : text_(std::move(text)), piece_(piece) {}
  Result<std::string> next() override {
    std::string piece = text_.substr(std::min(at_, text_.size()), piece_);
    at_ += piece.size();
    return piece;
  }

 private:
  const std::string text_;
  const std::size_t piece_;
  std::size_t at_ = 0;
};

}  // namespace stoker::testing
