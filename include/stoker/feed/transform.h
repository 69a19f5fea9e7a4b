// What happens to each picture between the file and the batch, and how its random part is drawn.
//
// Steps have the names, arguments and distributions of torchvision's. A list of them is folded into one Geometry a
// picture, so that decoder and resizer touch each pixel once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/base/status.h"
#include "stoker/feed/image.h"

namespace stoker::feed {

struct RandomResizedCrop {
  int height = 0;
  int width = 0;
  std::array<double, 2> scale = {0.08, 1.0};             // share of the picture's area
  std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0};  // width / height
  Interpolation interpolation = Interpolation::kBilinear;
};

struct Resize {
  int height = 0;  // with width 0: the length of the shorter side
  int width = 0;
  Interpolation interpolation = Interpolation::kBilinear;
};

struct CenterCrop {
  int height = 0;
  int width = 0;
};

struct RandomHorizontalFlip {
  double p = 0.5;
};

using TransformStep = std::variant<RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip>;

// What was drawn for one sample. More members come as more kinds of steps do.
struct SamplePlan {
  Geometry geometry;
};

// Steps as the Python package writes them: a list of {"kind": "Resize", "height": …, "width": …, "interpolation": …}.
// Sizes and ranges are TransformPlan's to check. Errors: kUnsupported (a kind that is none of the above).
Result<std::vector<TransformStep>> transform_steps(const Json& list);

// Threads: const, may be shared.
class TransformPlan {
 public:
  // Checks that the steps fold into one pass: flips anywhere, then at most one of RandomResizedCrop and Resize, then at
  // most one CenterCrop. Errors: kBadInput (a size or range that cannot be), kUnsupported (another order: which step).
  static Result<TransformPlan> compile(std::vector<TransformStep> steps);

  // For a picture of `width` × `height` at `position` of an epoch: a function of the arguments, whoever calls it when.
  SamplePlan draw_at(int width, int height, std::uint64_t seed, std::uint64_t epoch, std::uint64_t position) const;

  // {height, width} of every result, where it does not depend on the picture.
  std::optional<std::pair<int, int>> fixed_size() const;

 private:
  std::vector<TransformStep> steps_;
};

}  // namespace stoker::feed
