// The destination: its lock (flock on the folder itself), its record of what was staged into it, and the move of what
// is complete. Private.
//
//   DEST/.stoker-stage.json   {"schema": "stoker.staged.v1", "sources": [{source, size_bytes, modified_ns, kind, files,
//                             bytes, top: [names]}]}, replaced durably once a source is in place
//   DEST/.stoker-stage.part/  where members are unpacked; whatever a killed run left there is removed by the next
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "stoker/base/json.h"
#include "stoker/base/status.h"

namespace stoker::feed {

// Which source a record speaks of: another size or time is another source.
struct SourceIdentity {
  std::string path;  // absolute
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;
};
Result<SourceIdentity> identify(const std::filesystem::path& source);

struct Staged {
  std::string kind;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> top;  // the names that the source put into the destination itself
};

class Place {
 public:
  // Makes `directory` if missing, takes the lock, removes what a killed run left. Errors: kInUse, kIo, kNoSpace.
  static Result<Place> open(const std::filesystem::path& directory);
  Place(Place&& other) noexcept;
  Place& operator=(Place&&) = delete;
  // Removes what was not moved, the lock, and the directory itself when open() made it and it is still empty.
  ~Place();

  std::filesystem::path part() const;
  bool found_leftover() const { return found_leftover_; }

  // What the record says of `source`; nothing when it was not staged here, or when files of it are gone.
  std::optional<Staged> completed(const SourceIdentity& source) const;
  // Moves everything from part() to its place. A file that is there already is replaced only when `source` was staged
  // here before; else kExists, before anything is moved. Returns the top names.
  Result<std::vector<std::string>> move_in(const SourceIdentity& source);
  Status record(const SourceIdentity& source, const Staged& staged);

 private:
  explicit Place(std::filesystem::path directory) : directory_(std::move(directory)) {}
  std::filesystem::path record_path() const;
  Json find_record(const SourceIdentity& source) const;
  Json read_records() const;

  std::filesystem::path directory_;
  int lock_ = -1;
  bool made_ = false;
  bool found_leftover_ = false;
};

}  // namespace stoker::feed
