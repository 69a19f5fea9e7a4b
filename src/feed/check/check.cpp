#include "stoker/feed/check.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "feed/check/listing.h"
#include "stoker/base/files.h"
#include "stoker/base/hash.h"
#include "stoker/base/text.h"
#include "stoker/base/threads.h"
#include "stoker/base/units.h"
#include "stoker/feed/image.h"
#include "stoker/machine/machine.h"

namespace stoker::feed {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFile = std::size_t{1} << 30;
constexpr std::uint64_t kLargePicture = 30'000'000;  // pixels; of these one is decoded at a time, for memory's sake
constexpr std::size_t kFilesATask = 16;

struct Looked {
  ImageInfo info;
  Hash128 hash;
  std::uint64_t bytes = 0;
  std::string bad;
  std::string odd;
};

std::string lower_extension(const std::string& path) {
  std::string extension = fs::path(path).extension();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return extension;
}

bool name_fits(ImageFormat format, const std::string& extension) {
  switch (format) {
    case ImageFormat::kJpeg:
      return extension == ".jpg" || extension == ".jpeg";
    case ImageFormat::kPng:
      return extension == ".png";
    case ImageFormat::kWebp:
      return extension == ".webp";
    case ImageFormat::kBmp:
      return extension == ".bmp";
    case ImageFormat::kGif:
      return extension == ".gif";
    case ImageFormat::kOther:
      break;
  }
  return true;
}

std::string kind_of(const ImageInfo& info) {
  const char* channels = info.channels == 1   ? "grey"
                         : info.channels == 2 ? "grey with alpha"
                         : info.channels == 3 ? "colour"
                                              : "four channels";
  return fmt::format("{}, {} bits", channels, info.bits);
}

class Checker {
 public:
  Checker(const fs::path& directory, const Listing& listing, const CheckOptions& options)
      : directory_(directory), listing_(listing), options_(options), looked_(listing.files.size()) {}

  Status task(std::size_t index) {
    ImageDecoder decoder;
    const std::size_t end = std::min(looked_.size(), (index + 1) * kFilesATask);
    for (std::size_t i = index * kFilesATask; i < end; ++i) {
      if (options_.cancelled && options_.cancelled()) return Error{ErrorCode::kCancelled, "stopped on request"};
      looked_[i] = look(listing_.files[i].path, decoder);
      const auto done = done_.fetch_add(1, std::memory_order_relaxed) + 1;
      if (options_.progress) options_.progress({done, looked_.size(), listing_.files[i].path});
    }
    return {};
  }

  const std::vector<Looked>& looked() const { return looked_; }

 private:
  Looked look(const std::string& path, ImageDecoder& decoder) {
    Looked out;
    auto bytes = FileSystem::real().read(directory_ / path, kMaxFile);
    if (!bytes) {
      out.bad = bytes.error().message;
      return out;
    }
    out.bytes = bytes->size();
    out.hash = hash128(*bytes);
    const auto info = decoder.open(std::as_bytes(std::span(*bytes)));
    if (!info) {
      out.bad = info.error().message;
      return out;
    }
    out.info = *info;
    const auto decoded = decode(*info, decoder);
    if (!decoded) {
      out.bad = decoded.error().message;
      return out;
    }
    if (!name_fits(info->format, lower_extension(path)))
      out.odd = fmt::format("is a {} by its bytes", name(info->format));
    return out;
  }

  Status decode(const ImageInfo& info, ImageDecoder& decoder) {
    const bool large = static_cast<std::uint64_t>(info.width) * static_cast<std::uint64_t>(info.height) > kLargePicture;
    if (!large) return decoder.rgb().status();
    const MutexLock lock(large_);
    return decoder.rgb().status();
  }

  const fs::path& directory_;
  const Listing& listing_;
  const CheckOptions& options_;

  std::atomic<std::uint64_t> done_{0};
  std::vector<Looked> looked_;  // each entry is written by one thread

  Mutex large_;  // held while a large picture is decoded
};

void add_file(const ListedFile& file, const Looked& looked, CheckReport& report) {
  report.bytes += looked.bytes;
  if (!looked.bad.empty()) {
    report.bad.push_back({file.path, looked.bad});
    return;
  }
  if (!looked.odd.empty()) report.odd.push_back({file.path, looked.odd});
  ++report.formats[name(looked.info.format)];
  ++report.kinds[kind_of(looked.info)];
  report.rotated += looked.info.exif_orientation != 1 ? 1 : 0;
  const auto [shorter, longer] = std::minmax(looked.info.width, looked.info.height);
  report.least_side = report.least_side == 0 ? shorter : std::min(report.least_side, shorter);
  report.greatest_side = std::max(report.greatest_side, longer);
}

void find_duplicates(const Listing& listing, const std::vector<Looked>& looked, CheckReport& report) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::size_t>> by_hash;
  for (std::size_t i = 0; i < looked.size(); ++i) {
    if (looked[i].bytes > 0) by_hash[{looked[i].hash.high, looked[i].hash.low}].push_back(i);
  }
  for (const auto& [hash, indexes] : by_hash) {
    if (indexes.size() < 2) continue;
    std::vector<std::string> paths;
    std::set<std::string> splits;
    for (const std::size_t i : indexes) {
      paths.push_back(listing.files[i].path);
      splits.insert(listing.classes[listing.files[i].class_index].split);
    }
    report.across_splits += splits.size() > 1 ? 1 : 0;
    report.duplicates.push_back(std::move(paths));
  }
  std::sort(report.duplicates.begin(), report.duplicates.end());
}

CheckReport summed(Listing listing, const std::vector<Looked>& looked) {
  CheckReport report;
  report.files = listing.files.size();
  report.other_files = listing.other_files;
  report.hidden = std::move(listing.hidden);
  report.looping = std::move(listing.looping);
  for (std::size_t i = 0; i < looked.size(); ++i) add_file(listing.files[i], looked[i], report);
  find_duplicates(listing, looked, report);
  for (const CheckedClass& entry : listing.classes) {
    if (entry.files == 0) report.empty.push_back(entry.split.empty() ? entry.name : entry.split + "/" + entry.name);
  }
  report.classes = std::move(listing.classes);
  return report;
}

}  // namespace

Result<CheckReport> check(const fs::path& directory, const CheckOptions& options) {
  auto listing = list_pictures(directory);
  if (!listing) return listing.error();
  if (listing->files.empty()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("no pictures in {} ({} other files)", printable(directory.native()),
                             format_count(listing->other_files)),
                 "a data set is DIR/class/picture.jpg, or DIR/train/class/picture.jpg and DIR/val/..."};
  }
  const int threads = options.threads > 0 ? options.threads : machine::cpu_facts().usable;
  Checker checker(directory, *listing, options);
  const std::size_t tasks = (listing->files.size() + kFilesATask - 1) / kFilesATask;
  STOKER_TRY(for_each_parallel(tasks, threads, [&](std::size_t i) { return checker.task(i); }));
  return summed(std::move(*listing), checker.looked());
}

}  // namespace stoker::feed
