// A directory of checkpoints, each whole or absent. docs/formats/store.md has the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stoker/base/clock.h"
#include "stoker/base/files.h"
#include "stoker/base/json.h"
#include "stoker/base/notice.h"
#include "stoker/base/status.h"

namespace stoker::save {

using Step = std::int64_t;  // a global step number, ≥ 0
using Metrics = std::vector<std::pair<std::string, double>>;

// A tensor to be saved: `bytes` in row-major order, `dtype` as safetensors names it ("F32", "BF16", "BOOL", …).
struct TensorView {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::span<const std::byte> bytes;
};

// Bytes with an owner, 64-byte aligned. A tensor without elements has no bytes.
struct Buffer {
  std::shared_ptr<std::byte> data;
  std::size_t size_bytes = 0;
};

struct LoadedTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  Buffer bytes;
};

enum class Better { kHigher, kLower };

// Which checkpoints stay. A checkpoint that any rule wants is kept, and so are the pinned and the newest exact one.
struct Keep {
  std::size_t last = 3;          // the newest so many; 0: all
  std::int64_t every_steps = 0;  // the first at or after each multiple of so many; 0: no such rule
  // The first at or after each multiple of so much wall time since the store was first opened; 0: no such rule.
  Nanoseconds every{};
  std::int64_t every_epochs = 0;  // the first at or after each multiple of so many, by the metric "epoch"
  // The one with the best value of this metric; NaN never wins, the earlier of equals does. Empty: no such rule.
  std::string best_metric = {};
  Better better = Better::kHigher;
};

struct SaveOptions {
  std::string state = "null";  // JSON text, kept in the manifest; tensors are named in it as the caller likes
  Metrics metrics;
  std::string pin;    // letters, digits, '_' and '-': kept until removed by hand, and beside a step's own checkpoint
  bool exact = true;  // false: not a step's boundary (an emergency); never `latest`, never `best`
};

struct CheckpointInfo {
  Step step = 0;
  std::string pin;
  bool exact = true;
  std::filesystem::path path;    // its directory
  Nanoseconds created{};         // since 1970, UTC
  std::uint64_t size_bytes = 0;  // of its tensors, also of those that an earlier step wrote
  std::size_t tensor_count = 0;
  Metrics metrics;
};

// A checkpoint that cannot be trusted, and why.
struct Damage {
  Step step = 0;
  std::filesystem::path path;
  Error error;
};

struct Listing {
  std::vector<CheckpointInfo> checkpoints;  // whose manifest is sound; by step as a number, then by time
  std::vector<Damage> damaged;
  std::optional<Step> latest;  // the newest exact one
  std::optional<Step> best;    // by the newest manifest's rule
  Nanoseconds since{};         // when the store was first opened, as the newest manifest says; 0: it does not
};

// What one tensor is in its file, for `ckpt show`.
struct TensorInfo {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::string file;  // in the checkpoint's directory
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  std::string hash;  // XXH3-128, 32 hex digits
};

struct Description {
  CheckpointInfo info;
  std::vector<TensorInfo> tensors;
  Json state;
};

struct Loaded {
  CheckpointInfo info;
  std::vector<LoadedTensor> tensors;
  std::string state;            // JSON text, as it was saved in meaning
  std::vector<Damage> skipped;  // newer checkpoints that were passed over
};

// Threads:   one Store may be shared; saves run one at a time, reads beside them.
// Lifetime:  holds the directory's lock; a second open() for writing, from any process, fails at once with kInUse.
//            In a forked child it refuses every save.
// Crash:     what wait() confirmed survives power loss; a save still on its way is whole or absent.
class Store {
 public:
  struct Options {
    bool read_only = false;  // takes no lock, changes nothing
    Keep keep;
    FileSystem* files = nullptr;   // null: the real one
    const Clock* clock = nullptr;  // null: the real one
    int threads = 0;               // that copy and verify; 0: the CPUs one may use
    // Staging may take so much; 0: what the machine has left, but a tenth. A save that needs more goes through a buffer
    // of at most 16 MiB and returns when it is durable.
    std::uint64_t max_staging_bytes = 0;
    Notice notice;  // a lock taken over, a damaged checkpoint moved aside
  };

  // Creates `dir` if missing, and clears what a crash left. Errors: kInUse (names the owner), kNotFound (read-only and
  // missing), kIo.
  static Result<std::unique_ptr<Store>> open(const std::filesystem::path& dir, Options options);
  // Waits for the save on its way.
  ~Store();

  // Returns once every byte is copied; keeps no reference to `tensors`. Writing goes on in one background thread.
  // Blocks: while an earlier save is still being written; until it is durable where there is no room for a copy, which
  // a notice says once.
  // Errors: kBadInput, kExists, kNoSpace (with both numbers), kInUse (a forked child), and whatever the save before
  // failed with; after any of them nothing was saved, and the store is as it was.
  Status save(Step step, std::span<const TensorView> tensors, SaveOptions options);

  // Blocks until no save is on its way. Errors: the last save's, given once.
  Status wait();
  // wait(), then lets go of the lock. Reads go on working.
  Status close();

  void set_keep(Keep keep);  // from the next save on

  // Reads every manifest, no tensors. Errors: kIo.
  Result<Listing> list() const;
  // The manifest of a step, `pin` choosing among several. Errors: kNotFound, kCorrupt.
  Result<Description> describe(std::optional<Step> step, const std::string& pin = "") const;
  // Checks every byte of the step, or of all. The damaged ones; empty: all is well. Errors: kNotFound, kIo.
  Result<std::vector<Damage>> verify(std::optional<Step> step = {}) const;

  // Without a step: the newest exact checkpoint that passes every check; what was passed over is in `skipped`.
  // With one: that checkpoint or the error that names tensor, file, offset and both hashes.
  // Errors: kNotFound, kCorrupt (also when no checkpoint is whole), kIo.
  Result<Loaded> load(std::optional<Step> step = {}, const std::string& pin = "") const;

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stoker::save
