#include "watch/recorder/run_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "stoker/base/clock.h"
#include "stoker/base/files.h"
#include "stoker/base/hash.h"
#include "stoker/base/text.h"
#include "stoker/machine/machine.h"

namespace stoker::watch {
namespace {

constexpr std::size_t kLargestScript = std::size_t{16} << 20;

// The first word that is a Python file.
std::string script_of(const std::vector<std::string>& command) {
  const auto found =
      std::find_if(command.begin(), command.end(), [](const std::string& word) { return word.ends_with(".py"); });
  return found == command.end() ? "" : *found;
}

bool is_python(const std::string& program) {
  return std::filesystem::path(program).filename().native().starts_with("python");
}

// Why a command left no sign of our hooks.
std::string why_no_hooks(const Json& command) {
  if (command.items().empty()) return "the process has not loaded Stoker's hooks";
  if (!is_python(command.items()[0].as_string()))
    return fmt::format("'{}' did not start a Python that reads PYTHONPATH", command.items()[0].as_string());
  for (std::size_t i = 1; i < command.items().size(); ++i) {
    const std::string& word = command.items()[i].as_string();
    if (word.size() < 2 || word[0] != '-' || word[1] == '-' || word == "-c" || word == "-m") break;
    if (word.find('I') != std::string::npos) return "python -I ignores the environment that carries the hooks";
    if (word.find('E') != std::string::npos) return "python -E ignores the environment that carries the hooks";
    if (word.find('S') != std::string::npos) return "python -S does not load sitecustomize, which carries the hooks";
  }
  return "the interpreter ended before it loaded Stoker's hooks";
}

Json machine_json() {
  const machine::CpuFacts cpu = machine::cpu_facts();
  const machine::MemoryFacts memory = machine::memory_facts();
  return Json::object({{"cpus", cpu.usable},
                       {"cpu_quota", Json(cpu.quota)},
                       {"cpu_model", cpu.model},
                       {"memory_limit_bytes", Json(memory.limit)},
                       {"memory_bound_by", memory.bound_by}});
}

// Small enough that /dev/shm in a container (64 MB) still serves DataLoader workers.
RingOptions ring_options() {
  RingOptions options;
  options.slots = static_cast<std::uint32_t>(std::clamp(2 * machine::cpu_facts().usable + 16, 32, 256));
  options.capacity = 1U << 13;
  return options;
}

Result<RingFile> ring_at(const std::string& path, const RingOptions& options) {
  auto ring = Ring::create(path, options);
  if (!ring) return ring.error();
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const int failed = fd < 0 ? errno : ::posix_fallocate(fd, 0, ::lseek(fd, 0, SEEK_END));
  if (fd >= 0) ::close(fd);
  if (failed != 0) {
    ::unlink(path.c_str());
    return errno_error(failed, "cannot reserve the event ring " + printable(path));
  }
  return RingFile{path, *ring};
}

}  // namespace

Result<RunLock> RunLock::take(const std::filesystem::path& run) {
  const int fd = ::open(run.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno_error(errno, "cannot open the run " + printable(run.native()));
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return RunLock(fd);
  const int failed = errno;
  ::close(fd);
  if (failed == EWOULDBLOCK) return Error{ErrorCode::kInUse, printable(run.native()) + " is being recorded"};
  return errno_error(failed, "cannot lock the run " + printable(run.native()));
}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

Result<RingFile> create_ring(const std::filesystem::path& run) {
  const RingOptions options = ring_options();
  const std::uint64_t bytes = std::uint64_t{options.slots} * options.capacity * sizeof(Event);
  const auto shm_free = FileSystem::real().free_bytes("/dev/shm");
  if (::access("/dev/shm", W_OK) == 0 && shm_free && *shm_free >= 4 * bytes) {
    auto made = ring_at("/dev/shm/stoker-" + run.filename().native() + ".ring", options);
    if (made) return made;
  }
  return ring_at((run / "events.ring").native(), options);
}

Json first_run_json(const std::filesystem::path& run, const std::vector<std::string>& command,
                    const RecordOptions& options) {
  const Clock& clock = Clock::real();
  Json words = Json::array();
  for (const std::string& word : command) words.push(word);
  Json json = Json::object({{"schema", "stoker.run.v1"},
                            {"run_id", run.filename().native()},
                            {"name", options.name.empty() ? run_name(command) : options.name},
                            {"command", std::move(words)},
                            {"cwd", std::filesystem::current_path().native()},
                            {"started_utc", utc_iso(clock.wall())},
                            {"ended_utc", Json()},
                            {"started_monotonic_ns", clock.monotonic().count()},
                            {"outcome", Json::object({{"kind", "running"}})}});
  json.set("python", Json::object({{"recorded", false}, {"why", "the hooks have not been loaded yet"}}));
  json.set("machine", machine_json());
  json.set("parent_pid", ::getpid());
  const auto script = FileSystem::real().read(script_of(command), kLargestScript);
  json.set("script_sha", script ? Json(hash128(*script).hex()) : Json());
  const Json not_asked = Json::object({{"applied", false}, {"why", "not asked for"}});
  const Json not_yet = Json::object({{"applied", false}, {"why", "the script made no DataLoader"}});
  json.set("accelerate", options.accelerate ? not_yet : not_asked);
  return json;
}

void merge_hook_report(const std::filesystem::path& run, Json& json) {
  const auto text = FileSystem::real().read(run / "hook.json", std::size_t{1} << 20);
  auto report = text ? Json::parse(*text) : Result<Json>(text.error());
  if (!report) {
    json.set("python", Json::object({{"version", Json()},
                                     {"executable", Json()},
                                     {"recorded", false},
                                     {"why", why_no_hooks(json["command"])}}));
    return;
  }
  for (const auto& [key, value] : report->members()) {
    if (key == "python" || key == "exception" || key == "accelerate" || key == "loaders") json.set(key, value);
  }
}

void remove_hook_files(const std::filesystem::path& run) {
  for (const char* name : {"hook.json", "hook.first", "hook.claim"}) ::unlink((run / name).c_str());
}

std::string run_name(const std::vector<std::string>& command) {
  const std::string script = script_of(command);
  if (!script.empty()) return std::filesystem::path(script).stem().native();
  return command.empty() ? "notebook" : std::filesystem::path(command[0]).filename().native();
}

}  // namespace stoker::watch
