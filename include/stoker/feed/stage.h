// Brings a folder or an archive to local disk: whole, verified, or not at all.
//
// Members are unpacked into a hidden folder inside the destination and moved to their places once everything has been
// verified, so that a reader never sees half a data set; docs/design/feed-stage.md has the steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "stoker/base/notice.h"
#include "stoker/base/status.h"

namespace stoker::feed {

struct StageOptions {
  bool force = false;         // also onto a network or FUSE mount, and in spite of the space check
  bool keep_partial = false;  // of an archive that is cut short, keep the members that are whole
  int threads = 0;            // 0: the CPUs one has, at most 8
  ProgressSink progress;      // bytes
  Notice notice;
  // Asked between blocks; true ends the work with kCancelled and leaves nothing behind.
  std::function<bool()> cancelled;
};

struct StageResult {
  std::filesystem::path destination;
  std::string kind;  // "zip", "tar", "tar.gz", "folder", …
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t skipped = 0;  // Mac resource forks, and special files of a folder
  bool already = false;       // an earlier call had done it all
  std::chrono::nanoseconds duration{0};
};

// Stages `source` into the directory `destination`, made if missing; what lies there already stays. A second call with
// the same source returns at once.
//
// Errors: kNotFound, kBadInput (a web page or other text under an archive's name; a member that would land outside),
// kCorrupt (cut short, fails its CRC; says how far it got), kNoSpace (with the numbers, before anything is written
// where they can be known), kExists (another file has a member's name), kInUse (another stage into the same place),
// kUnsupported (a format or member that Stoker does not unpack; a remote destination without `force`), kCancelled, kIo.
// After any of them the destination is as it was, but for what keep_partial kept.
// Blocks until done. Threads: may be called from several at once, for different destinations.
Result<StageResult> stage(const std::filesystem::path& source, const std::filesystem::path& destination,
                          const StageOptions& options = {});

}  // namespace stoker::feed
