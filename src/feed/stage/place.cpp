#include "feed/stage/place.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/files.h"
#include "stoker/base/text.h"

namespace stoker::feed {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecord = ".stoker-stage.json";
constexpr const char* kPart = ".stoker-stage.part";

struct Count {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

void count_in(const fs::path& path, Count& count) {
  struct ::stat info {};
  if (::lstat(path.c_str(), &info) != 0) return;
  if (S_ISREG(info.st_mode)) {
    ++count.files;
    count.bytes += static_cast<std::uint64_t>(info.st_size);
  }
  if (!S_ISDIR(info.st_mode)) return;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    count_in(it->path(), count);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() == fs::file_type::directory;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  const auto type = fs::symlink_status(path, error).type();
  return type != fs::file_type::not_found && type != fs::file_type::none;
}

// The first of `from`'s entries that `to` has as well, folders in both apart, which are merged; "" for none.
std::string first_clash(const fs::path& from, const fs::path& to, bool replace) {
  std::error_code error;
  for (fs::directory_iterator it(from, error), end; !error && it != end; it.increment(error)) {
    const fs::path place = to / it->path().filename();
    if (!is_there(place)) continue;
    const bool folder = is_folder(it->path());
    if (folder != is_folder(place) || (!folder && !replace)) return place;
    if (!folder) continue;
    if (std::string clash = first_clash(it->path(), place, replace); !clash.empty()) return clash;
  }
  return "";
}

Status merge(const fs::path& from, const fs::path& to) {
  std::error_code error;
  for (fs::directory_iterator it(from, error), end; !error && it != end; it.increment(error)) {
    const fs::path place = to / it->path().filename();
    if (is_folder(it->path()) && is_folder(place)) {
      STOKER_TRY(merge(it->path(), place));
    } else {
      STOKER_TRY(FileSystem::real().rename(it->path(), place));
    }
  }
  if (error) return errno_error(error.value(), "cannot list " + printable(from.native()));
  return {};
}

}  // namespace

Result<SourceIdentity> identify(const fs::path& source) {
  struct ::stat info {};
  if (::stat(source.c_str(), &info) != 0) {
    Error error = errno_error(errno, "cannot find the source " + printable(source.native()));
    if (error.code == ErrorCode::kNotFound) error.hint = "check the path; on Colab the drive must be mounted first";
    return error;
  }
  std::error_code ignored;
  SourceIdentity identity{fs::canonical(source, ignored), static_cast<std::uint64_t>(info.st_size), 0};
  identity.modified_ns = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return identity;
}

Result<Place> Place::open(const fs::path& directory) {
  Place place(directory);
  place.made_ = !is_there(directory);
  STOKER_TRY(FileSystem::real().create_directories(directory));
  place.lock_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (place.lock_ < 0) return errno_error(errno, "cannot open the folder " + printable(directory.native()));
  if (::flock(place.lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(std::exchange(place.lock_, -1));
    return Error{ErrorCode::kInUse, "another stage into " + printable(directory.native()) + " is running",
                 "wait for it, or end it"};
  }
  place.found_leftover_ = is_there(place.part());
  STOKER_TRY(FileSystem::real().remove_all(place.part()));
  STOKER_TRY(FileSystem::real().create_directories(place.part()));
  return place;
}

Place::Place(Place&& other) noexcept
    : directory_(std::move(other.directory_)),
      lock_(std::exchange(other.lock_, -1)),
      made_(other.made_),
      found_leftover_(other.found_leftover_) {}

Place::~Place() {
  if (lock_ < 0) return;
  (void)FileSystem::real().remove_all(part());
  ::close(lock_);
  if (made_) ::rmdir(directory_.c_str());  // refuses when something is in it
}

fs::path Place::part() const { return directory_ / kPart; }
fs::path Place::record_path() const { return directory_ / kRecord; }

Json Place::read_records() const {
  auto text = FileSystem::real().read(record_path());
  auto parsed = text ? Json::parse(*text) : Result<Json>(text.error());
  if (parsed && (*parsed)["schema"].as_string() == "stoker.staged.v1") return *parsed;
  return Json::object({{"schema", "stoker.staged.v1"}, {"sources", Json::array()}});
}

Json Place::find_record(const SourceIdentity& source) const {
  const Json records = read_records();
  for (const Json& entry : records["sources"].items()) {
    if (entry["source"].as_string() == source.path) return entry;
  }
  return {};
}

std::optional<Staged> Place::completed(const SourceIdentity& source) const {
  const Json entry = find_record(source);
  if (entry["size_bytes"].as_int(-1) != static_cast<std::int64_t>(source.size_bytes)) return std::nullopt;
  if (entry["modified_ns"].as_int() != source.modified_ns) return std::nullopt;
  Staged staged{entry["kind"].as_string(),
                static_cast<std::uint64_t>(entry["files"].as_int()),
                static_cast<std::uint64_t>(entry["bytes"].as_int()),
                {}};
  Count count;
  for (const Json& top : entry["top"].items()) count_in(directory_ / top.as_string(), count);
  if (count.files < staged.files || count.bytes < staged.bytes) return std::nullopt;
  return staged;
}

Result<std::vector<std::string>> Place::move_in(const SourceIdentity& source) {
  const bool replace = !find_record(source).is_null();
  if (const std::string clash = first_clash(part(), directory_, replace); !clash.empty()) {
    return Error{ErrorCode::kExists,
                 printable(clash) + " is there already, and is not from this source; nothing was changed",
                 "stage into an empty folder, or move that away"};
  }
  auto entries = FileSystem::real().list(part());
  if (!entries) return entries.error();
  STOKER_TRY(merge(part(), directory_));
  std::vector<std::string> top;
  for (const FileInfo& entry : *entries) top.push_back(entry.name);
  return top;
}

Status Place::record(const SourceIdentity& source, const Staged& staged) {
  Json records = read_records();
  Json sources = Json::array();
  for (const Json& entry : records["sources"].items()) {
    if (entry["source"].as_string() != source.path) sources.push(entry);
  }
  Json top = Json::array();
  for (const std::string& name : staged.top) top.push(name);
  sources.push(Json::object({{"source", source.path},
                             {"size_bytes", source.size_bytes},
                             {"modified_ns", source.modified_ns},
                             {"kind", staged.kind},
                             {"files", staged.files},
                             {"bytes", staged.bytes},
                             {"top", std::move(top)}}));
  records.set("sources", std::move(sources));
  return write_file_durably(FileSystem::real(), record_path(), records.dump(1) + "\n");
}

}  // namespace stoker::feed
