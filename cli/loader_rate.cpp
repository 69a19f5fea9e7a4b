#include "loader_rate.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/files.h"
#include "stoker/base/text.h"
#include "stoker/feed/image.h"
#include "stoker/feed/transform.h"
#include "stoker/watch/verdict.h"

namespace stoker::cli {
namespace {

constexpr double kSeconds = 1.5;          // of CPU time
constexpr std::size_t kFilesAClass = 64;  // looked at; the sample is drawn from them
constexpr std::size_t kLeastImages = 8;
constexpr std::size_t kLargestFile = std::size_t{64} << 20;
constexpr std::size_t kWarmUp = 4;  // images that size the decoder's buffers and are not counted

double thread_cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// Files of the class folders under `root`, in an order that mixes the classes.
std::vector<std::filesystem::path> sample_files(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> files;
  const auto folders = FileSystem::real().list(root);
  if (!folders) return files;
  for (const FileInfo& folder : *folders) {
    if (!folder.is_directory || folder.name.front() == '.') continue;
    const auto entries = FileSystem::real().list(root / folder.name);
    if (!entries) continue;
    std::size_t taken = 0;
    const std::size_t stride = std::max<std::size_t>(1, entries->size() / kFilesAClass);
    for (std::size_t i = 0; i < entries->size() && taken < kFilesAClass; i += stride) {
      if ((*entries)[i].is_directory) continue;
      files.push_back(root / folder.name / (*entries)[i].name);
      ++taken;
    }
  }
  std::mt19937 order(0);  // NOLINT(cert-msc51-cpp): the same sample every time
  std::shuffle(files.begin(), files.end(), order);
  return files;
}

// False for a size that the loader refuses too. Without a fixed size the buffer grows to the picture's.
bool make_room(const feed::Geometry& g, std::vector<float>& out) {
  if (static_cast<std::uint64_t>(g.width) * static_cast<std::uint64_t>(g.height) > feed::kMaxPixels) return false;
  const auto values = static_cast<std::size_t>(g.window.width) * static_cast<std::size_t>(g.window.height) * 3;
  if (out.size() < values) out.resize(values);
  return true;
}

Signal<double> rate_of(const std::vector<std::filesystem::path>& files, const feed::TransformPlan& plan) {
  feed::ImageDecoder decoder;
  const feed::PixelOptions pixels;
  std::vector<float> out;
  std::size_t images = 0;
  std::string first_error = "no file could be read";
  double start = thread_cpu_seconds();
  double spent = 0;
  for (std::size_t i = 0; spent < kSeconds && i < 4 * files.size(); ++i) {
    const auto& file = files[i % files.size()];
    const auto bytes = FileSystem::real().read(file, kLargestFile);
    if (!bytes) continue;
    const auto info = decoder.open(std::as_bytes(std::span(bytes->data(), bytes->size())));
    if (!info) {
      first_error = info.error().message;
      continue;
    }
    const feed::Geometry geometry = plan.draw_at(info->width, info->height, 0, 0, i).geometry;
    if (!make_room(geometry, out)) continue;
    if (const Status done = decoder.render(geometry, pixels, out.data()); !done) {
      first_error = done.error().message;
      continue;
    }
    if (++images == kWarmUp) start = thread_cpu_seconds();
    spent = thread_cpu_seconds() - start;
  }
  if (images < kLeastImages + kWarmUp || spent <= 0)
    return Signal<double>::unavailable(fmt::format("only {} of its images could be decoded: {}", images, first_error));
  return static_cast<double>(images - kWarmUp) / spent;
}

}  // namespace

Signal<double> measure_loader_rate(const Json& run) {
  const Json* loader = watch::training_loader(run);
  if (loader == nullptr) return Signal<double>::unavailable("the script's loaders were not recorded");
  const Json& recipe = (*loader)["recipe"];
  const std::string& root = (*loader)["root"].as_string();
  if (!recipe.is_array() || root.empty())
    return Signal<double>::unavailable("what its transforms ask for was not recorded");
  auto steps = feed::transform_steps(recipe);
  if (!steps) return Signal<double>::unavailable(steps.error().message);
  const auto plan = feed::TransformPlan::compile(std::move(*steps));
  if (!plan) return Signal<double>::unavailable(plan.error().message);
  const auto path = std::filesystem::path(run["cwd"].as_string()) / root;
  const auto files = sample_files(path);
  if (files.empty()) return Signal<double>::unavailable("no image under " + printable(path.native()));
  return rate_of(files, *plan);
}

}  // namespace stoker::cli
