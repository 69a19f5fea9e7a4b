#include "stoker/save/store.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "save/store/catalog.h"
#include "save/store/errors.h"
#include "save/store/owner.h"
#include "save/store/plan.h"
#include "save/store/reader.h"
#include "save/store/shelf.h"
#include "save/store/staging.h"
#include "save/store/writer.h"
#include "stoker/base/events.h"
#include "stoker/base/mutex.h"
#include "stoker/base/text.h"
#include "stoker/base/threads.h"
#include "stoker/base/units.h"
#include "stoker/machine/machine.h"

namespace stoker::save {
namespace {

EventName kStageEvent("save.stage");

// What a manifest takes beside the state's text: generous, as it decides only whether to try.
constexpr std::uint64_t kManifestBytesPerTensor = 400;
constexpr std::uint64_t kSpareBytes = 64 << 10;
constexpr std::size_t kUnstagedBuffer = std::size_t{16} << 20;

Status check_options(Step step, const SaveOptions& options) {
  if (step < 0) return Error{ErrorCode::kBadInput, fmt::format("step {} is negative", step)};
  if (!options.pin.empty() && !valid_pin(options.pin)) {
    return Error{ErrorCode::kBadInput, fmt::format("pin '{}' is no name", printable(options.pin)),
                 "use at most 64 letters, digits, '_' and '-'"};
  }
  if (!options.exact && options.pin.empty())
    return Error{ErrorCode::kBadInput, "a checkpoint that is not exact needs a pin",
                 "give it a name, such as 'emergency'"};
  return {};
}

}  // namespace

// How a save runs: (1) save() waits until the writer is idle and takes the error it may have left; (2) it plans and
// copies while the writer stays idle, so the staging buffer and the history need no lock; (3) it hands the job over;
// (4) the writer writes, remembers, removes what expired, and is idle again. Stopping finishes the job at hand.
struct Store::State {
  State(std::filesystem::path where, Options given)
      : dir(std::move(where)),
        options(std::move(given)),
        files(options.files != nullptr ? *options.files : FileSystem::real()),
        clock(options.clock != nullptr ? *options.clock : Clock::real()),
        threads(options.threads != 0 ? options.threads : machine::cpu_facts().usable),
        shelf(files, dir, threads),
        keep(options.keep) {}

  Status make_directory();
  Status begin();
  Status stage(Step step, std::span<const TensorView> tensors, SaveOptions options);
  Status clear_name(const std::filesystem::path& path);
  std::string free_name(Step step, const std::string& pin) const;
  Status check_space(std::uint64_t needed) const;
  bool has_room(std::uint64_t size);
  Status copy(const Plan& plan, std::span<const TensorView> tensors, WriteJob& made);
  void copy_into_staging(const Plan& plan, std::span<const TensorView> tensors);
  void hand_over(WriteJob job);
  Status wait_idle();
  void run(std::stop_token stop);
  Status write(WriteJob& job);
  void rotate();
  void probe_links(const Manifest& manifest, const std::filesystem::path& checkpoint);
  bool vanished(const std::filesystem::path& checkpoint) const {
    return files.stat(checkpoint).code() == ErrorCode::kNotFound;
  }
  void tell(Severity severity, const std::string& message) const {
    if (options.notice) options.notice(severity, message);
  }

  const std::filesystem::path dir;
  const Options options;
  FileSystem& files;
  const Clock& clock;
  const int threads;
  const int pid = ::getpid();
  const Shelf shelf;

  Mutex saving;  // one save(), wait() or close() at a time
  std::unique_ptr<OwnerLock> lock STOKER_GUARDED_BY(saving);

  // Whoever is active has these: the saving thread while the writer is idle, else the writer.
  StagingBuffer staging;
  bool told_of_room = false;
  History history;
  std::optional<bool> has_links;
  std::vector<CheckpointInfo> catalog;
  Nanoseconds since{};  // set by begin()

  Mutex mutex;
  std::condition_variable_any changed;
  std::optional<WriteJob> job STOKER_GUARDED_BY(mutex);  // until it is written
  std::optional<Error> error STOKER_GUARDED_BY(mutex);
  Keep keep STOKER_GUARDED_BY(mutex);

  std::jthread writer;  // last: stops before all that it uses; started by the first save
};

// Every level that had to be made is synced into the one above: a checkpoint is as durable as its whole path.
Status Store::State::make_directory() {
  std::filesystem::path level = std::filesystem::absolute(dir).lexically_normal();
  if (!level.has_filename()) level = level.parent_path();
  const bool there = !vanished(level);
  std::vector<std::filesystem::path> parents;
  for (; level.has_relative_path() && vanished(level); level = level.parent_path())
    parents.push_back(level.parent_path());
  STOKER_TRY(files.create_directories(dir));
  for (const auto& parent : parents) STOKER_TRY(files.sync_directory(parent));
  if (there) (void)files.sync_directory(level.parent_path());  // whoever made it may not have come to this
  return {};
}

Status Store::State::begin() {
  if (options.read_only) {
    const auto info = files.stat(dir);
    if (!info) return info.error();
    if (!info->is_directory) return Error{ErrorCode::kNotFound, shown(dir) + " is not a directory"};
    return {};
  }
  STOKER_TRY(make_directory());
  auto taken = OwnerLock::take(files, dir, clock, options.notice);
  if (!taken) return taken.error();
  const MutexLock hold(saving);
  lock = *std::move(taken);
  STOKER_TRY(remove_leftovers(files, dir));
  auto listing = shelf.list();
  if (!listing) return listing.error();
  catalog = std::move(listing->checkpoints);
  since = listing->since.count() > 0 ? listing->since : clock.wall();
  return {};
}

Status Store::State::wait_idle() {
  MutexLock hold(mutex);
  changed.wait(hold, [this]() STOKER_REQUIRES(mutex) { return !job.has_value(); });
  if (!error) return {};
  Status failed(*error);
  error.reset();
  return failed;
}

Status Store::State::check_space(std::uint64_t needed) const {
  const auto free = files.free_bytes(dir);
  if (!free || *free >= needed) return {};  // a file system that cannot say is tried
  return Error{ErrorCode::kNoSpace,
               fmt::format("a checkpoint of {} does not fit: {} has {} free", format_size(needed), shown(dir),
                           format_size(*free)),
               "remove old checkpoints, keep fewer of them, or save to another disk"};
}

// Emergencies of one step, met again after each resume, stand beside each other.
std::string Store::State::free_name(Step step, const std::string& pin) const {
  std::string name = directory_name(step, pin);
  for (int n = 2; !vanished(dir / name); ++n) name = fmt::format("{}-{}", directory_name(step, pin), n);
  return name;
}

// A whole checkpoint is never replaced; a damaged one, which a resumed run comes by again, is moved aside.
Status Store::State::clear_name(const std::filesystem::path& path) {
  if (vanished(path)) return {};
  const auto manifest = read_manifest(files, path);
  if (manifest && check_tensors(files, path, *manifest, threads)) {
    return Error{ErrorCode::kExists, shown(path) + " exists already, and is whole",
                 "save under a later step, or remove it first"};
  }
  auto aside = dir / ("damaged-" + path.filename().native());
  for (int n = 2; !vanished(aside); ++n) aside = dir / fmt::format("damaged-{}-{}", path.filename().native(), n);
  STOKER_TRY(files.rename(path, aside));
  std::erase_if(catalog, [&](const CheckpointInfo& info) { return info.path == path; });
  tell(Severity::kWarning, fmt::format("{} is damaged; it was moved to {}", shown(path), shown(aside)));
  return {};
}

// The buffer there is counts as left: growing gives it back first.
bool Store::State::has_room(std::uint64_t size) {
  if (size <= std::max<std::uint64_t>(staging.capacity(), kUnstagedBuffer)) return true;
  std::uint64_t room = options.max_staging_bytes;
  if (room == 0) {
    const auto left = machine::memory_facts().left;
    if (!left.value) return true;  // then the kernel is asked
    room = *left.value + staging.capacity();
    room -= room / 10;
  }
  if (size <= room) return true;
  if (!std::exchange(told_of_room, true)) {
    tell(Severity::kWarning,
         fmt::format("{}: a copy of {} does not fit into the {} of memory that are left; saves block until they are "
                     "written",
                     shown(dir), format_size(size), format_size(room)));
  }
  return false;
}

// Into the staging buffer; where that has no room, the writer reads the tensors themselves and save() waits for it.
Status Store::State::copy(const Plan& plan, std::span<const TensorView> tensors, WriteJob& made) {
  if (has_room(plan.part_bytes)) {
    STOKER_TRY(staging.reserve(plan.part_bytes, threads));
    copy_into_staging(plan, tensors);
    made.part = {staging.data(), plan.part_bytes};
    return {};
  }
  STOKER_TRY(staging.reserve(kUnstagedBuffer, threads));
  Unstaged unstaged{plan.header, {}, {staging.data(), kUnstagedBuffer}};
  for (const Placement& place : plan.copied) unstaged.sources.push_back({place.tensor, tensors[place.tensor].bytes});
  made.unstaged = std::move(unstaged);
  return {};
}

void Store::State::copy_into_staging(const Plan& plan, std::span<const TensorView> tensors) {
  std::memcpy(staging.data(), plan.header.data(), plan.header.size());
  std::vector<Copy> copies;
  copies.reserve(plan.copied.size());
  for (const Placement& place : plan.copied) {
    const auto& bytes = tensors[place.tensor].bytes;
    copies.push_back({staging.data() + place.offset, bytes.data(), bytes.size()});
  }
  copy_all(copies, threads);
}

Status Store::State::stage(Step step, std::span<const TensorView> tensors, SaveOptions given) {
  STOKER_TRY(check_options(step, given));
  STOKER_TRY(check_input(tensors));
  if (!history.empty() && vanished(history.checkpoint())) history.forget();
  Plan plan = make_plan(tensors, history, part_name(step, given.pin), threads);
  STOKER_TRY(
      check_space(plan.part_bytes + given.state.size() + kManifestBytesPerTensor * tensors.size() + kSpareBytes));
  const std::string name = given.exact ? directory_name(step, given.pin) : free_name(step, given.pin);
  STOKER_TRY(clear_name(dir / name));

  WriteJob made;
  if (!plan.copied.empty()) STOKER_TRY(copy(plan, tensors, made));
  made.dir = dir;
  made.name = name;
  made.manifest.step = step;
  made.manifest.pin = given.pin;
  made.manifest.exact = given.exact;
  made.manifest.created = clock.wall();
  made.manifest.since = since;
  made.manifest.metrics = std::move(given.metrics);
  made.manifest.parts = std::move(plan.parts);
  made.manifest.tensors = std::move(plan.tensors);
  made.state = std::move(given.state);
  made.shared = std::move(plan.shared);
  const bool must_wait = made.unstaged.has_value();
  hand_over(std::move(made));
  return must_wait ? wait_idle() : Status();
}

void Store::State::hand_over(WriteJob made) {
  {
    const MutexLock hold(mutex);
    made.manifest.keep = keep;
    job = std::move(made);
    changed.notify_all();
  }
  if (!writer.joinable()) writer = std::jthread([this](std::stop_token stop) { run(std::move(stop)); });
}

void Store::State::run(std::stop_token stop) {
  set_thread_name("stoker-save");
  for (;;) {
    WriteJob* work = nullptr;
    {
      MutexLock hold(mutex);
      changed.wait(hold, stop, [this]() STOKER_REQUIRES(mutex) { return job.has_value(); });
      if (!job) return;
      work = &*job;  // save() leaves it alone until it is reset below
    }
    const Status status = write(*work);
    const MutexLock hold(mutex);
    if (!status) error = status.error();
    job.reset();
    changed.notify_all();
  }
}

Status Store::State::write(WriteJob& work) {
  auto parsed = Json::parse(work.state, kMaxManifestBytes);
  if (!parsed) return Error{ErrorCode::kBadInput, "the state beside the tensors: " + parsed.error().message};
  work.manifest.state = *std::move(parsed);
  const Status status = write_checkpoint(files, work);
  if (!status) {
    if (!work.shared.empty()) history.forget();  // what it refers to may be what failed
    return status;
  }
  const auto path = dir / work.name;
  catalog.push_back(stoker::save::describe(work.manifest, path));
  sort_by_step(catalog);
  if (!has_links) probe_links(work.manifest, path);
  if (*has_links) history.remember(work.manifest, path);
  rotate();
  return {};
}

// Where a file cannot have two names, every save writes everything.
void Store::State::probe_links(const Manifest& manifest, const std::filesystem::path& checkpoint) {
  if (manifest.parts.empty()) {
    has_links = false;
    return;
  }
  const auto probe = dir / fmt::format("{}link-{}", kTemporaryPrefix, ::getpid());
  has_links = files.link(checkpoint / manifest.parts.back().file, probe).ok();
  (void)files.remove(probe);
}

// The new checkpoint is durable by now. One that cannot be removed is no failure of the save.
void Store::State::rotate() {
  Keep rule;
  {
    const MutexLock hold(mutex);
    rule = keep;
  }
  for (const auto& path : expired(catalog, rule, since)) {
    const Status removed = remove_checkpoint(files, path);
    if (!removed && removed.code() != ErrorCode::kNotFound) {
      tell(Severity::kWarning, removed.error().message);
      continue;
    }
    std::erase_if(catalog, [&](const CheckpointInfo& info) { return info.path == path; });
  }
}

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}

Store::~Store() {
  (void)close();
  // In a forked child the writer does not exist: its handle can be neither joined nor detached, only left alone.
  if (::getpid() != state_->pid) (void)state_.release();
}

Result<std::unique_ptr<Store>> Store::open(const std::filesystem::path& dir, Options options) {
  auto state = std::make_unique<State>(dir, std::move(options));
  STOKER_TRY(state->begin());
  return std::unique_ptr<Store>(new Store(std::move(state)));
}

Status Store::save(Step step, std::span<const TensorView> tensors, SaveOptions options) {
  if (::getpid() != state_->pid) {
    return Error{ErrorCode::kInUse, fmt::format("{} belongs to process {}, of which this is a forked child",
                                                shown(state_->dir), state_->pid)};
  }
  const MutexLock hold(state_->saving);
  if (state_->lock == nullptr) {
    return Error{ErrorCode::kBadInput,
                 shown(state_->dir) + (state_->options.read_only ? " is open for reading only" : " has been closed")};
  }
  STOKER_TRY(state_->wait_idle());
  std::uint64_t bytes = 0;
  for (const TensorView& tensor : tensors) bytes += tensor.bytes.size();
  emit(kStageEvent, EventKind::kBegin);
  Status status = state_->stage(step, tensors, std::move(options));
  emit(kStageEvent, EventKind::kEnd, static_cast<double>(bytes));
  return status;
}

Status Store::wait() {
  if (::getpid() != state_->pid) return {};
  const MutexLock hold(state_->saving);
  return state_->wait_idle();
}

Status Store::close() {
  if (::getpid() != state_->pid) return {};
  const MutexLock hold(state_->saving);
  Status status = state_->wait_idle();
  state_->lock.reset();
  return status;
}

void Store::set_keep(Keep keep) {
  const MutexLock hold(state_->mutex);
  state_->keep = std::move(keep);
}

Result<Listing> Store::list() const { return state_->shelf.list(); }

Result<Description> Store::describe(std::optional<Step> step, const std::string& pin) const {
  return state_->shelf.describe(step, pin);
}

Result<std::vector<Damage>> Store::verify(std::optional<Step> step) const { return state_->shelf.verify(step); }

Result<Loaded> Store::load(std::optional<Step> step, const std::string& pin) const {
  return state_->shelf.load(step, pin);
}

}  // namespace stoker::save
