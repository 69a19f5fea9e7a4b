#include "stoker/feed/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "feed/loader/random.h"

namespace stoker::feed {
namespace {

constexpr int kMaxSide = 16384;
constexpr int kCropTries = 10;  // then the centre, as torchvision

template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <typename... F>
Overloaded(F...) -> Overloaded<F...>;

// Python's round(): halves go to the even neighbour.
int round_half_even(double value) { return static_cast<int>(std::nearbyint(value)); }

Status check_side(const char* step, int side) {
  if (side >= 1 && side <= kMaxSide) return {};
  return Error{ErrorCode::kBadInput, fmt::format("{}: a side of {} pixels is outside [1, {}]", step, side, kMaxSide)};
}

Status check_range(const char* what, const std::array<double, 2>& range) {
  if (range[0] > 0 && range[0] <= range[1] && std::isfinite(range[1])) return {};
  return Error{ErrorCode::kBadInput, fmt::format("RandomResizedCrop: {} ({}, {}) is not a range of numbers above 0",
                                                 what, range[0], range[1])};
}

Status check(const RandomResizedCrop& step) {
  STOKER_TRY(check_side("RandomResizedCrop", step.height));
  STOKER_TRY(check_side("RandomResizedCrop", step.width));
  STOKER_TRY(check_range("scale", step.scale));
  return check_range("ratio", step.ratio);
}
Status check(const Resize& step) {
  STOKER_TRY(check_side("Resize", step.height));
  return step.width == 0 ? Status() : check_side("Resize", step.width);
}
Status check(const CenterCrop& step) {
  STOKER_TRY(check_side("CenterCrop", step.height));
  return check_side("CenterCrop", step.width);
}
Status check(const RandomHorizontalFlip& step) {
  if (step.p >= 0 && step.p <= 1) return {};
  return Error{ErrorCode::kBadInput, fmt::format("RandomHorizontalFlip: p = {} is outside [0, 1]", step.p)};
}

// Steps come in stages; a step may not follow one of a later stage. Flips fit anywhere.
int stage(const TransformStep& step) {
  if (std::holds_alternative<RandomHorizontalFlip>(step)) return 0;
  return std::holds_alternative<CenterCrop>(step) ? 2 : 1;
}
const char* name(const TransformStep& step) {
  static constexpr const char* kNames[] = {"RandomResizedCrop", "Resize", "CenterCrop", "RandomHorizontalFlip"};
  return kNames[step.index()];
}

// The picture as it is seen so far: `geometry` holds the crop and the size, mirrored or not.
struct Drawing {
  Geometry geometry;
  SampleRandom& random;

  int shown_width() const { return geometry.window.width; }
  int shown_height() const { return geometry.window.height; }
};

void set_size(Geometry& g, int width, int height, Interpolation interpolation) {
  g.width = width;
  g.height = height;
  g.window = {0, 0, width, height};
  g.interpolation = interpolation;
}

IntBox central_box(const RandomResizedCrop& step, int width, int height) {
  const double shape = static_cast<double>(width) / height;
  const auto [least, most] = std::minmax(step.ratio[0], step.ratio[1]);
  IntBox box{0, 0, width, height};
  if (shape < least) box.height = std::clamp(round_half_even(width / least), 1, height);
  if (shape > most) box.width = std::clamp(round_half_even(height * most), 1, width);
  box.left = (width - box.width) / 2;
  box.top = (height - box.height) / 2;
  return box;
}

IntBox random_box(const RandomResizedCrop& step, int width, int height, SampleRandom& random) {
  const double area = static_cast<double>(width) * height;
  const double low = std::log(step.ratio[0]);
  const double high = std::log(step.ratio[1]);
  for (int attempt = 0; attempt < kCropTries; ++attempt) {
    const double target = area * random.uniform(step.scale[0], step.scale[1]);
    const double aspect = std::exp(random.uniform(low, high));
    const double w = std::nearbyint(std::sqrt(target * aspect));
    const double h = std::nearbyint(std::sqrt(target / aspect));
    if (!(w > 0 && w <= width && h > 0 && h <= height)) continue;
    IntBox box{0, 0, static_cast<int>(w), static_cast<int>(h)};
    box.top = static_cast<int>(random.below(static_cast<std::uint32_t>(height - box.height + 1)));
    box.left = static_cast<int>(random.below(static_cast<std::uint32_t>(width - box.width + 1)));
    return box;
  }
  return central_box(step, width, height);
}

void apply(const RandomResizedCrop& step, Drawing& d) {
  Geometry& g = d.geometry;
  IntBox box = random_box(step, g.crop.width, g.crop.height, d.random);
  // The box was drawn on the picture as shown; the crop is in the file's own columns.
  if (g.mirror) box.left = g.crop.width - box.left - box.width;
  g.crop = box;
  set_size(g, step.width, step.height, step.interpolation);
}

void apply(const Resize& step, Drawing& d) {
  Geometry& g = d.geometry;
  if (step.width != 0) return set_size(g, step.width, step.height, step.interpolation);
  const auto [shorter, longer] = std::minmax(g.width, g.height);
  // Truncated, not rounded, as torchvision computes it.
  const auto long_side = static_cast<int>(static_cast<double>(std::int64_t{step.height} * longer) / shorter);
  const bool upright = g.width <= g.height;
  set_size(g, upright ? step.height : long_side, upright ? long_side : step.height, step.interpolation);
}

// Where a crop of `crop` begins on a side of `side`; below 0 where the picture is padded with black.
int central_offset(int side, int crop) {
  const int padding = crop > side ? (crop - side) / 2 : 0;
  const int padded = std::max(side, crop);
  return round_half_even((padded - crop) / 2.0) - padding;
}

void apply(const CenterCrop& step, Drawing& d) {
  Geometry& g = d.geometry;
  const int left = central_offset(d.shown_width(), step.width);
  g.window.left = g.mirror ? d.shown_width() - left - step.width : left;
  g.window.top = central_offset(d.shown_height(), step.height);
  g.window.width = step.width;
  g.window.height = step.height;
}

void apply(const RandomHorizontalFlip& step, Drawing& d) {
  if (d.random.uniform() < step.p) d.geometry.mirror = !d.geometry.mirror;
}

}  // namespace

Result<TransformPlan> TransformPlan::compile(std::vector<TransformStep> steps) {
  int reached = 0;
  const TransformStep* last = nullptr;
  for (const TransformStep& step : steps) {
    STOKER_TRY(std::visit([](const auto& s) { return check(s); }, step));
    const int at = stage(step);
    if (at == 0) continue;
    if (at <= reached)
      return Error{ErrorCode::kUnsupported, fmt::format("{} cannot follow {}", name(step), name(*last)),
                   "give at most one of RandomResizedCrop and Resize, then at most one CenterCrop"};
    reached = at;
    last = &step;
  }
  TransformPlan plan;
  plan.steps_ = std::move(steps);
  return plan;
}

SamplePlan TransformPlan::draw_at(int width, int height, std::uint64_t seed, std::uint64_t epoch,
                                  std::uint64_t position) const {
  SampleRandom random(seed, epoch, position, Purpose::kTransform);
  Drawing drawing{{}, random};
  drawing.geometry.crop = {0, 0, width, height};
  set_size(drawing.geometry, width, height, Interpolation::kBilinear);
  for (const TransformStep& step : steps_) std::visit([&](const auto& s) { apply(s, drawing); }, step);
  return {drawing.geometry};
}

std::optional<std::pair<int, int>> TransformPlan::fixed_size() const {
  std::optional<std::pair<int, int>> size;
  for (const TransformStep& step : steps_)
    std::visit(Overloaded{[&](const RandomResizedCrop& s) {
                            size = {s.height, s.width};
                          },
                          [&](const Resize& s) {
                            if (s.width != 0) size = {s.height, s.width};
                          },
                          [&](const CenterCrop& s) {
                            size = {s.height, s.width};
                          },
                          [](const RandomHorizontalFlip&) {}},
               step);
  return size;
}

}  // namespace stoker::feed
