// What readers ask of a directory of checkpoints, beside a writer that adds and removes some meanwhile.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "save/store/manifest.h"
#include "stoker/base/files.h"
#include "stoker/save/store.h"

namespace stoker::save {

// Threads: may be shared; takes no lock.
// A checkpoint that is renamed away while it is looked at is absent, never damaged: what fails is looked at again, and
// is damaged only when its directory is still there and fails in the same way.
class Shelf {
 public:
  Shelf(FileSystem& files, std::filesystem::path dir, int threads)
      : files_(files), dir_(std::move(dir)), threads_(threads) {}

  // As Store has them.
  Result<Listing> list() const;
  Result<Description> describe(std::optional<Step> step, const std::string& pin) const;
  Result<std::vector<Damage>> verify(std::optional<Step> step) const;
  Result<Loaded> load(std::optional<Step> step, const std::string& pin) const;

 private:
  Result<std::vector<CheckpointInfo>> choose(std::optional<Step> step, const std::string& pin) const;
  Result<Loaded> load_one(const std::filesystem::path& checkpoint) const;
  Status check_one(const std::filesystem::path& checkpoint) const;
  bool vanished(const std::filesystem::path& checkpoint) const;

  FileSystem& files_;
  const std::filesystem::path dir_;
  const int threads_;
};

}  // namespace stoker::save
