#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "feed/dataset/scan.h"
#include "stoker/base/text.h"
#include "stoker/feed/dataset.h"

namespace stoker::feed {
namespace {

// Larger than any picture that the pixel limit lets through.
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{2} << 30;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// `known` is the size that fstat told; a file that shrank meanwhile gives what it still has.
Status read_all(int fd, std::size_t known, const std::string& path, FileBuffer& out) {
  std::byte* at = out.resize(known);
  std::size_t done = 0;
  while (done < known) {
    const ssize_t got = ::pread(fd, at + done, known - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, "cannot read " + path);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  if (done < known) return Error{ErrorCode::kIo, fmt::format("{} ended after {} of {} bytes", path, done, known)};
  return {};
}

}  // namespace

std::byte* FileBuffer::resize(std::size_t size) {
  if (size > capacity_) {
    capacity_ = size + size / 4;
    data_.reset(new std::byte[capacity_]);  // not make_unique, which would clear what is overwritten anyway
  }
  size_ = size;
  return data_.get();
}

FileIndex::~FileIndex() {
  if (root_fd_ >= 0) ::close(root_fd_);
}

std::string FileIndex::path(std::size_t sample) const {
  std::string name = names_.path(sample);
  return root_.empty() ? name : (root_ / name).string();
}

Status FileIndex::read(std::size_t sample, FileBuffer& out) const {
  const std::string name = names_.path(sample);
  const auto shown = [&] { return printable(path(sample)); };
  // O_NONBLOCK: a named pipe that somebody left among the pictures must not hold a thread for ever.
  const int base = root_fd_ >= 0 ? root_fd_ : AT_FDCWD;
  const Descriptor file(::openat(base, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return errno_error(errno, "cannot open " + shown());
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return errno_error(errno, "cannot stat " + shown());
  if (!S_ISREG(info.st_mode)) return Error{ErrorCode::kBadInput, shown() + " is not a regular file"};
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > kMaxFileBytes)
    return Error{ErrorCode::kBadInput, fmt::format("{} has {} bytes, more than any picture here may have ({})", shown(),
                                                   size, kMaxFileBytes)};
  return read_all(file.get(), size, shown(), out);
}

Result<std::shared_ptr<const FileIndex>> FileIndex::open_folder(const std::filesystem::path& root,
                                                                FolderOptions options) {
  auto scanned = scan_class_folder(root, options);
  if (!scanned) return scanned.error();
  const std::shared_ptr<FileIndex> index(new FileIndex);
  index->root_ = root;
  index->root_fd_ = ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (index->root_fd_ < 0) return errno_error(errno, "cannot open the folder " + root.string());
  index->names_ = std::move(scanned->names);
  index->classes_ = std::move(scanned->classes);
  index->notes_ = std::move(scanned->notes);
  return std::shared_ptr<const FileIndex>(index);
}

Result<std::shared_ptr<const FileIndex>> FileIndex::from_list(
    const std::vector<std::pair<std::string, std::int64_t>>& samples, std::vector<std::string> classes) {
  if (samples.empty()) return Error{ErrorCode::kBadInput, "the list of samples is empty", "give (path, label) pairs"};
  const std::int64_t limit =
      classes.empty() ? std::numeric_limits<std::int32_t>::max() : static_cast<std::int64_t>(classes.size());
  const std::shared_ptr<FileIndex> index(new FileIndex);
  std::string folder;  // samples of one folder mostly follow each other
  std::uint32_t folder_number = index->names_.add_folder("");
  for (const auto& [path, label] : samples) {
    if (label < 0 || label >= limit)
      return Error{ErrorCode::kBadInput, fmt::format("label {} of {} is outside [0, {})", label, path, limit),
                   "labels are class numbers counted from 0"};
    const std::size_t slash = path.rfind('/');
    const std::string_view parent = slash == std::string::npos ? "" : std::string_view(path).substr(0, slash + 1);
    if (parent != folder) {
      folder = parent;
      folder_number = index->names_.add_folder(folder);
    }
    index->names_.add(folder_number, std::string_view(path).substr(parent.size()), static_cast<std::uint32_t>(label));
  }
  index->classes_ = std::move(classes);
  return std::shared_ptr<const FileIndex>(index);
}

}  // namespace stoker::feed
