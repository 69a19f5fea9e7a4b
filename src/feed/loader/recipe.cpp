#include "stoker/feed/transform.h"

#include <fmt/format.h>

#include "stoker/base/json.h"

namespace stoker::feed {
namespace {

int pixels(const Json& value) { return static_cast<int>(value.as_int()); }

std::array<double, 2> range(const Json& value) {
  const auto& items = value.items();
  if (items.size() != 2) return {0, 0};  // which compile() refuses
  return {items[0].as_double(), items[1].as_double()};
}

Interpolation interpolation(const Json& value) {
  if (value.as_string() == "nearest") return Interpolation::kNearest;
  if (value.as_string() == "bicubic") return Interpolation::kBicubic;
  return Interpolation::kBilinear;
}

Result<TransformStep> step_of(const Json& step) {
  const std::string& kind = step["kind"].as_string();
  const int height = pixels(step["height"]);
  const int width = pixels(step["width"]);
  if (kind == "RandomResizedCrop") {
    return TransformStep(RandomResizedCrop{height, width, range(step["scale"]), range(step["ratio"]),
                                           interpolation(step["interpolation"])});
  }
  if (kind == "Resize") return TransformStep(Resize{height, width, interpolation(step["interpolation"])});
  if (kind == "CenterCrop") return TransformStep(CenterCrop{height, width});
  if (kind == "RandomHorizontalFlip") return TransformStep(RandomHorizontalFlip{step["p"].as_double()});
  return Error{ErrorCode::kUnsupported, fmt::format("unknown transform '{}'", kind)};
}

}  // namespace

Result<std::vector<TransformStep>> transform_steps(const Json& list) {
  std::vector<TransformStep> steps;
  for (const Json& one : list.items()) {
    auto step = step_of(one);
    if (!step) return step.error();
    steps.push_back(*step);
  }
  return steps;
}

}  // namespace stoker::feed
