#include "stoker/base/run_directory.h"

#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "stoker/base/text.h"

namespace stoker {
namespace {

struct Candidate {
  std::filesystem::path path;
  std::int64_t modified_ns = 0;
};

// Every folder under `root` that holds a run.json.
std::vector<Candidate> candidates(const std::filesystem::path& root) {
  std::vector<Candidate> found;
  auto entries = FileSystem::real().list(root);
  if (!entries) return found;
  for (const FileInfo& entry : *entries) {
    struct ::stat info {};
    if (!entry.is_directory || ::stat((root / entry.name / "run.json").c_str(), &info) != 0) continue;
    found.push_back({root / entry.name, std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec});
  }
  return found;
}

std::string tidy_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool keep =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
    if (keep || (!out.empty() && out.back() != '-')) out += keep ? c : '-';
  }
  while (!out.empty() && (out.back() == '-' || out.back() == '.')) out.pop_back();
  return out.empty() ? "run" : out.substr(0, 40);
}

}  // namespace

std::filesystem::path runs_root() {
  const char* chosen = std::getenv("STOKER_RUNS");
  return chosen != nullptr && *chosen != '\0' ? chosen : "runs";
}

Result<std::filesystem::path> create_run_directory(const std::filesystem::path& root, std::string_view name,
                                                   const Clock& clock) {
  STOKER_TRY(FileSystem::real().create_directories(root));
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::uint16_t tag = 0;
    if (::getrandom(&tag, sizeof tag, 0) != sizeof tag) tag = static_cast<std::uint16_t>(clock.monotonic().count());
    const auto path = root / fmt::format("{}-{}-{:04x}", utc_stamp(clock.wall()), tidy_name(name), tag);
    if (::mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST) return errno_error(errno, "cannot make the run folder " + printable(path.native()));
  }
  return Error{ErrorCode::kExists, "no free name for a run folder under " + printable(root.native())};
}

Result<std::filesystem::path> find_run(const std::filesystem::path& root, std::string_view spec) {
  if (!spec.empty() && std::filesystem::exists(std::filesystem::path(spec) / "run.json"))
    return std::filesystem::path(spec);
  const auto runs = candidates(root);
  if (spec.empty()) {
    const auto newest = std::max_element(runs.begin(), runs.end(),
                                         [](const auto& a, const auto& b) { return a.modified_ns < b.modified_ns; });
    if (newest != runs.end()) return newest->path;
    return Error{ErrorCode::kNotFound, fmt::format("no recorded run under {}", printable(root.native())),
                 "record one with `stoker run -- python train.py`, or set STOKER_RUNS"};
  }
  std::vector<std::filesystem::path> matches;
  std::vector<std::string> names;
  for (const Candidate& run : runs) {
    const std::string name = run.path.filename().native();
    if (name == spec) return run.path;
    if (name.starts_with(spec) || name.ends_with(spec)) matches.push_back(run.path);
    names.push_back(name);
  }
  if (matches.size() == 1) return matches[0];
  if (matches.empty()) {
    const std::string near = nearest_match(spec, names);
    return Error{ErrorCode::kNotFound, fmt::format("no run '{}' under {}", printable(spec), printable(root.native())),
                 near.empty() ? "" : fmt::format("did you mean {}?", near)};
  }
  std::string all;
  for (const auto& match : matches) all += (all.empty() ? "" : ", ") + match.filename().native();
  return Error{ErrorCode::kBadInput, fmt::format("'{}' names {} runs", printable(spec), matches.size()),
               "choose one of " + all};
}

Status write_run_json(FileSystem& fs, const std::filesystem::path& run, const Json& value) {
  return write_file_durably(fs, run / "run.json", value.dump(2) + "\n");
}

Result<Json> read_run_json(FileSystem& fs, const std::filesystem::path& run) {
  auto text = fs.read(run / "run.json");
  if (!text) return text.error();
  auto value = Json::parse(*text);
  if (!value)
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: {}", printable((run / "run.json").native()), value.error().message)};
  return value;
}

}  // namespace stoker
