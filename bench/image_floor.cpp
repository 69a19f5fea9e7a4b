// How fast can one thread make samples when nothing else is in the way?
//
//   image_floor FOLDER [--rounds N] [--images N] [--uint8] [--fast]
//
// Reads FOLDER's pictures into memory once, then renders each: a RandomResizedCrop to 224 (drawn from a fixed seed, the
// same crops every round), a flip, and normalised float32 planes. Prints one JSON object; its figure is the best
// round, in images per second of this thread's CPU time. A loader cannot be faster than this on one thread.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "feed/image/kernels.h"
#include "stoker/base/json.h"
#include "stoker/feed/image.h"

namespace {

namespace fs = std::filesystem;
using namespace stoker;
using namespace stoker::feed;

constexpr int kSide = 224;

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::vector<std::string> read_folder(const fs::path& folder, std::size_t limit) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().extension() != ".md" && entry.path().extension() != ".csv")
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> files;
  const std::size_t step = std::max<std::size_t>(paths.size() / std::max<std::size_t>(limit, 1), 1);
  for (std::size_t i = 0; i < paths.size() && files.size() < limit; i += step) {
    std::ifstream in(paths[i], std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

// torchvision's RandomResizedCrop: area 8–100 %, aspect 3:4–4:3, ten tries, else the whole picture.
IntBox random_crop(const ImageInfo& info, std::mt19937_64& random) {
  const auto uniform = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = uniform(0.08, 1.0) * info.width * info.height;
    const double ratio = std::exp(uniform(std::log(0.75), std::log(4.0 / 3)));
    const int width = static_cast<int>(std::lround(std::sqrt(area * ratio)));
    const int height = static_cast<int>(std::lround(std::sqrt(area / ratio)));
    if (width < 1 || height < 1 || width > info.width || height > info.height) continue;
    const int left = static_cast<int>(uniform(0, info.width - width + 1));
    const int top = static_cast<int>(uniform(0, info.height - height + 1));
    return {left, top, width, height};
  }
  return {0, 0, info.width, info.height};
}

struct Round {
  int images = 0;
  int bad = 0;
  double cpu_s = 0;
};

Round run_round(const std::vector<std::string>& files, PixelType type, ImageDecoder& decoder, std::vector<float>& out) {
  PixelOptions pixels{type, UnitScale::kDivide, {0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  std::mt19937_64 random(1);
  Round round;
  const double start = thread_cpu_s();
  for (const std::string& bytes : files) {
    const Result<ImageInfo> info = decoder.open(std::as_bytes(std::span(bytes)));
    const IntBox crop = info.ok() ? random_crop(*info, random) : IntBox{};
    const Geometry geometry{crop, kSide, kSide, {0, 0, kSide, kSide}, (random() & 1) != 0, Interpolation::kBilinear};
    const bool ok = info.ok() && decoder.render(geometry, pixels, out.data()).ok();
    ++(ok ? round.images : round.bad);
  }
  round.cpu_s = thread_cpu_s() - start;
  return round;
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 5;
  std::size_t limit = 1000;
  PixelType type = PixelType::kFloat32Nchw;
  DecoderOptions options;
  const char* folder = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--uint8") == 0)
      type = PixelType::kUint8Nhwc;
    else if (std::strcmp(argv[i], "--fast") == 0)
      options.fidelity = Fidelity::kFast;
    else if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
      rounds = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--images") == 0 && i + 1 < argc)
      limit = static_cast<std::size_t>(std::atoll(argv[++i]));
    else
      folder = argv[i];
  }
  if (folder == nullptr || !fs::is_directory(folder)) {
    std::fprintf(stderr, "usage: image_floor FOLDER [--rounds N] [--images N] [--uint8] [--fast]\n");
    return 2;
  }
  const std::vector<std::string> files = read_folder(folder, limit);
  ImageDecoder decoder(options);
  std::vector<float> out(std::size_t{3} * kSide * kSide);
  std::vector<double> rates;
  Round last;
  for (int i = 0; i < rounds; ++i) {
    last = run_round(files, type, decoder, out);
    rates.push_back(last.images / last.cpu_s);
  }
  std::sort(rates.begin(), rates.end());
  Json report = Json::object({{"schema", "stoker.bench.image_floor.v1"},
                              {"images", last.images},
                              {"bad", last.bad},
                              {"rounds", rounds},
                              {"dtype", type == PixelType::kFloat32Nchw ? "float32" : "uint8"},
                              {"target", kernel_target()},
                              {"images_per_cpu_s", rates.back()},
                              {"median_images_per_cpu_s", rates[rates.size() / 2]}});
  std::printf("%s\n", report.dump(2).c_str());
  return last.images > 0 ? 0 : 1;
}
