// Decides what a save copies: the layout of the new part, and which tensors an earlier part has already.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "save/store/manifest.h"
#include "save/store/writer.h"
#include "stoker/save/store.h"

namespace stoker::save {

// The tensors of the checkpoint written last, for finding those that did not change.
//
// A tensor is hashed in place, before it is copied, when there is a chance that this saves the copy: after its first
// save, and as long as it keeps standing still. Which ones move is known for nothing, as the writer hashes them anyway.
class History {
 public:
  struct Known {
    TensorEntry entry;
    std::string hash;
    Part part;
    bool moves = false;
  };

  // Null when there is none or hashing it would be in vain.
  const Known* candidate(const TensorView& tensor) const;
  // What was just written under `checkpoint`.
  void remember(const Manifest& manifest, const std::filesystem::path& checkpoint);
  void forget();

  const std::filesystem::path& checkpoint() const { return checkpoint_; }
  bool empty() const { return known_.empty(); }

 private:
  std::map<std::string, Known, std::less<>> known_;
  std::filesystem::path checkpoint_;
};

// Where the bytes of one tensor go within the new part.
struct Placement {
  std::size_t tensor = 0;    // index in what is saved
  std::uint64_t offset = 0;  // from the start of the file
};

struct Plan {
  std::vector<Part> parts;
  std::vector<StoredTensor> tensors;  // in the order given; no hash yet where the tensor is copied
  std::vector<SharedPart> shared;
  std::string header;  // of the new part, which is the last of `parts`; empty: no new part
  std::vector<Placement> copied;
  std::uint64_t part_bytes = 0;  // header and tensors
};

// Errors: kBadInput: a name that is empty, reserved or there twice, a dtype that is not stored, a size that does not
// fit the shape.
Status check_input(std::span<const TensorView> tensors);

// Hashes candidates in place with `threads` threads. `tensors` have passed check_input().
Plan make_plan(std::span<const TensorView> tensors, const History& history, const std::string& new_part, int threads);

}  // namespace stoker::save
