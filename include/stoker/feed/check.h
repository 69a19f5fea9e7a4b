// What is in a folder of pictures, and which files are bad: every file read and decoded once, with all cores.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stoker/base/notice.h"
#include "stoker/base/status.h"

namespace stoker::feed {

struct CheckedClass {
  std::string split;  // "train", "val", …; "" where the folder has no splits
  std::string name;   // "" for pictures that lie in no class folder
  std::uint64_t files = 0;
};

struct FileFinding {
  std::string path;  // relative to the folder
  std::string what;
};

struct CheckReport {
  std::vector<CheckedClass> classes;  // in label order
  std::uint64_t files = 0;            // pictures by their names, good and bad
  std::uint64_t bytes = 0;
  std::uint64_t other_files = 0;  // of other names; they are not read

  std::vector<FileFinding> bad;      // cannot be decoded, by path
  std::vector<FileFinding> odd;      // decoded, but not what the name says
  std::vector<std::string> hidden;   // folders that are skipped, as ImageLoader skips them
  std::vector<std::string> looping;  // links to a folder above them, cut as ImageLoader cuts them
  std::vector<std::string> empty;    // class folders without a picture

  std::map<std::string, std::uint64_t> formats;  // "JPEG" → 350
  std::map<std::string, std::uint64_t> kinds;    // "colour, 8 bits" → 350
  std::uint64_t rotated = 0;                     // with an EXIF orientation other than 1
  int least_side = 0;                            // shortest and longest side seen
  int greatest_side = 0;

  std::vector<std::vector<std::string>> duplicates;  // the same bytes; each group has two paths or more
  std::uint64_t across_splits = 0;                   // groups that lie in more than one split

  bool good() const { return bad.empty() && empty.empty() && files > 0; }
};

struct CheckOptions {
  int threads = 0;  // 0: the CPUs one has
  ProgressSink progress;
  std::function<bool()> cancelled;
};

// `directory` is a class folder (DIR/class/picture), a folder of splits of such (DIR/train/class/picture), or a folder
// of pictures. Errors: kNotFound, kBadInput (no folder; no picture in it),
// kIo (a folder in it cannot be read), kCancelled.
// Blocks until every file was read.
Result<CheckReport> check(const std::filesystem::path& directory, const CheckOptions& options = {});

}  // namespace stoker::feed
