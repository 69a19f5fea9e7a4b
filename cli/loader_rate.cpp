#include "loader_rate.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "stoker/base/files.h"
#include "stoker/base/text.h"
#include "stoker/feed/image.h"

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

// The training set: the largest of the recorded loaders.
const Json* largest_loader(const Json& run) {
  const Json* chosen = nullptr;
  for (const Json& one : run["loaders"].items()) {
    if (chosen == nullptr || one["samples"].as_double() > (*chosen)["samples"].as_double()) chosen = &one;
  }
  return chosen;
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

// The number that follows `key` in a transform's repr, "size=(224, 224)" or "size=[256]".
int size_after(const std::string& repr, const std::string& transform) {
  std::size_t at = repr.find(transform);
  if (at == std::string::npos) return 0;
  at = repr.find("size=", at);
  at = at == std::string::npos ? at : repr.find_first_of("0123456789", at);
  return at == std::string::npos ? 0 : std::clamp(std::atoi(repr.c_str() + at), 0, 8192);
}

// What the recorded transforms do to a picture's geometry; near enough for its cost.
class Crops {
 public:
  explicit Crops(const std::string& repr)
      : random_crop_(size_after(repr, "RandomResizedCrop(")), resize_(size_after(repr, " Resize(")) {
    side_ = std::max(random_crop_, size_after(repr, "CenterCrop("));
    if (side_ == 0) side_ = resize_ > 0 ? resize_ : 224;
  }

  int side() const { return side_; }

  feed::Geometry of(const feed::ImageInfo& info) { return random_crop_ > 0 ? random_crop(info) : whole(info); }

 private:
  feed::Geometry random_crop(const feed::ImageInfo& info) {
    const double area = std::uniform_real_distribution(0.08, 1.0)(random_) * info.width * info.height;
    const double ratio = std::exp(std::uniform_real_distribution(std::log(0.75), std::log(4.0 / 3))(random_));
    const int width = std::clamp(static_cast<int>(std::lround(std::sqrt(area * ratio))), 1, info.width);
    const int height = std::clamp(static_cast<int>(std::lround(std::sqrt(area / ratio))), 1, info.height);
    feed::Geometry g;
    g.crop = {std::uniform_int_distribution(0, info.width - width)(random_),
              std::uniform_int_distribution(0, info.height - height)(random_), width, height};
    g.width = g.height = side_;
    g.window = {0, 0, side_, side_};
    g.mirror = random_() % 2 == 0;
    return g;
  }
  feed::Geometry whole(const feed::ImageInfo& info) const {
    const double scale = static_cast<double>(std::max(resize_, side_)) / std::min(info.width, info.height);
    feed::Geometry g;
    g.crop = {0, 0, info.width, info.height};
    g.width = std::max(side_, static_cast<int>(info.width * scale));
    g.height = std::max(side_, static_cast<int>(info.height * scale));
    g.window = {(g.width - side_) / 2, (g.height - side_) / 2, side_, side_};
    return g;
  }

  int random_crop_;
  int resize_;
  int side_ = 224;
  std::mt19937 random_{0};
};

Signal<double> rate_of(const std::vector<std::filesystem::path>& files, Crops crops) {
  feed::ImageDecoder decoder;
  feed::PixelOptions pixels;
  std::vector<float> out(static_cast<std::size_t>(crops.side()) * static_cast<std::size_t>(crops.side()) * 3);
  std::size_t images = 0;
  std::string first_error = "no file could be read";
  double start = thread_cpu_seconds();
  double spent = 0;
  for (std::size_t i = 0; spent < kSeconds && i < 4 * files.size(); ++i) {
    const auto& file = files[i % files.size()];
    const auto bytes = FileSystem::real().read(file, kLargestFile);
    if (!bytes) continue;
    const auto info = decoder.open(std::as_bytes(std::span(bytes->data(), bytes->size())));
    const Status done = info ? decoder.render(crops.of(*info), pixels, out.data()) : info.status();
    if (!done) {
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
  const Json* loader = largest_loader(run);
  if (loader == nullptr) return Signal<double>::unavailable("the script's loaders were not recorded");
  const std::string& root = (*loader)["root"].as_string();
  if (root.empty() || (*loader)["kind"].as_string() != "ImageFolder")
    return Signal<double>::unavailable("the dataset is no class folder of images");
  const auto path = std::filesystem::path(run["cwd"].as_string()) / root;
  const auto files = sample_files(path);
  if (files.empty()) return Signal<double>::unavailable("no image under " + printable(path.native()));
  return rate_of(files, Crops((*loader)["transforms"].as_string()));
}

}  // namespace stoker::cli
