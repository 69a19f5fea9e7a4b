// Where samples come from: numbered from 0, each with a label, a path for people, and bytes.
//
// The loader sees only SampleSource. Class folders and lists of files are here; shards, archives and mapped indexes
// come as further sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/base/status.h"

namespace stoker::feed {

// The bytes of one file; kept by its reader and grown, never shrunk.
class FileBuffer {
 public:
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }
  // Room for `size` bytes, whose old content is gone.
  std::byte* resize(std::size_t size);

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

// Threads: all members may be called from any thread at once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual std::size_t size() const = 0;
  virtual std::int64_t label(std::size_t sample) const = 0;
  virtual std::string path(std::size_t sample) const = 0;
  // The sample's whole file into `out`. Errors name the path: kNotFound, kIo; kBadInput (no regular file, too large).
  virtual Status read(std::size_t sample, FileBuffer& out) const = 0;
  // Class names by label; empty when the source has none.
  virtual const std::vector<std::string>& classes() const = 0;
};

// Names and labels in two arrays: 16 bytes a sample plus its file name; folder names are stored once.
class PackedNames {
 public:
  // The number of a folder, to be given to add(). "" is the root itself.
  std::uint32_t add_folder(std::string path);
  void add(std::uint32_t folder, std::string_view file_name, std::uint32_t label);
  std::size_t size() const { return records_.size(); }
  std::uint32_t label(std::size_t i) const { return records_[i].label; }
  // Relative to the root, unless the folder was absolute.
  std::string path(std::size_t i) const;
  std::size_t memory_bytes() const;

 private:
  struct Record {
    std::uint64_t name;  // offset into names_, where it ends with a zero byte
    std::uint32_t folder;
    std::uint32_t label;
  };

  std::string names_;
  std::vector<std::string> folders_;
  std::vector<Record> records_;
};

struct FolderOptions {
  bool allow_empty_classes = false;
};

// What a scan passed over, so that nothing is dropped in silence.
struct FolderNotes {
  std::vector<std::string> hidden;       // names that begin with a dot, relative to the root
  std::vector<std::string> empty;        // classes without an image
  std::vector<std::string> looping;      // folders that lead back to one above them
  std::uint64_t other_files = 0;         // files without an image's extension, and all that lie in the root itself
  std::vector<std::string> other_names;  // the first few of them
};

// Image files on a file system, by name.
class FileIndex final : public SampleSource {
 public:
  // A class folder under torchvision's ImageFolder rules: each folder in `root` is a class, sorted by name; its images
  // (by extension, in any case; nested folders too) come sorted by folder, then name, in bytes' order. Hidden folders
  // and files are passed over and noted. Loops of symbolic links are cut. Errors: kNotFound; kBadInput (no class
  // folder, no image, a class without one: all named); kIo (a folder that cannot be read).
  static Result<std::shared_ptr<const FileIndex>> open_folder(const std::filesystem::path& root,
                                                              FolderOptions options = {});

  // Any list of (path, label), in its own order; relative paths count from the current folder. With `classes`, labels
  // must lie in [0, classes.size()). Errors: kBadInput (empty list; the first label that does not fit).
  static Result<std::shared_ptr<const FileIndex>> from_list(
      const std::vector<std::pair<std::string, std::int64_t>>& samples, std::vector<std::string> classes = {});

  ~FileIndex() override;
  FileIndex(const FileIndex&) = delete;
  FileIndex& operator=(const FileIndex&) = delete;

  std::size_t size() const override { return names_.size(); }
  std::int64_t label(std::size_t sample) const override { return names_.label(sample); }
  std::string path(std::size_t sample) const override;
  Status read(std::size_t sample, FileBuffer& out) const override;
  const std::vector<std::string>& classes() const override { return classes_; }

  const FolderNotes& notes() const { return notes_; }
  std::size_t memory_bytes() const { return names_.memory_bytes(); }

 private:
  FileIndex() = default;

  std::filesystem::path root_;  // as the user wrote it; "" for lists
  int root_fd_ = -1;            // keeps relative names working when the process changes its folder
  PackedNames names_;
  std::vector<std::string> classes_;
  FolderNotes notes_;
};

// True for the extensions that torchvision's ImageFolder takes, in any case.
bool has_image_extension(std::string_view file_name);

}  // namespace stoker::feed
