#include "stoker/feed/stage.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "feed/stage/place.h"
#include "feed/stage/sniff.h"
#include "feed/stage/target.h"
#include "stoker/base/clock.h"
#include "stoker/base/files.h"
#include "stoker/base/text.h"
#include "stoker/base/units.h"
#include "stoker/machine/machine.h"

namespace stoker::feed {
namespace {

namespace fs = std::filesystem;

constexpr int kMostThreads = 8;

std::string shown(const fs::path& path) { return printable(path.native()); }

Status check_places(const fs::path& source, const fs::path& destination, Packing packing) {
  std::error_code error;
  if (fs::exists(destination, error) && !fs::is_directory(destination, error)) {
    return Error{ErrorCode::kExists, shown(destination) + " is a file, not a folder", "name a folder to stage into"};
  }
  if (packing != Packing::kFolder) return {};
  const fs::path from = fs::weakly_canonical(source, error);
  const fs::path to = fs::weakly_canonical(destination, error);
  const auto [stop, ignored] = std::mismatch(from.begin(), from.end(), to.begin(), to.end());
  if (stop == from.end()) {
    return Error{ErrorCode::kBadInput, fmt::format("{} lies inside {}", shown(destination), shown(source)),
                 "stage into a folder outside the source"};
  }
  return {};
}

// Unpacking thousands of files over a network is slow, and Drive has been seen to lose some of them.
Status check_mount(const fs::path& destination, const StageOptions& options) {
  const auto mount = machine::mount_of(destination);
  if (!mount) return {};
  if (mount->read_only) {
    return Error{ErrorCode::kIo,
                 fmt::format("{} is on a read-only mount ({}, {})", shown(destination), shown(mount->point),
                             printable(mount->filesystem)),
                 "stage to a place that can be written, such as /tmp, /content or /kaggle/working"};
  }
  if (!machine::is_remote(mount->kind) || options.force) return {};
  return Error{ErrorCode::kUnsupported,
               fmt::format("{} is on a {} mount ({}, {})", shown(destination), machine::name(mount->kind),
                           shown(mount->point), printable(mount->filesystem)),
               "unpacking there is slow and can lose files; stage to the local disk, or insist with --force"};
}

Result<Need> need_of(const fs::path& source, Packing packing, const SourceIdentity& identity) {
  if (packing == Packing::kFolder) return need_of_folder(source);
  if (packing == Packing::kZip) return need_of_zip(source);
  // What a compressed tar holds is at least about its own size; the disk is watched while it is unpacked.
  return Need{identity.size_bytes, 0, false};
}

// A drive's client keeps a copy of the archive on the same disk while it is read.
std::uint64_t drive_copy(const fs::path& source, const SourceIdentity& identity, Packing packing) {
  const auto mount = machine::mount_of(source);
  const bool drive = mount && mount->kind == machine::MountKind::kFuse &&
                     (mount->filesystem == "fuse.drive" || mount->source == "drive");
  return drive && packing != Packing::kFolder ? identity.size_bytes : 0;
}

Status check_space(const fs::path& destination, const Need& need, std::uint64_t drive_bytes, bool force) {
  const auto free = FileSystem::real().free_bytes(destination);
  if (!free || force) return {};
  struct ::statvfs info {};
  const bool few_inodes =
      need.files > 0 && ::statvfs(destination.c_str(), &info) == 0 && info.f_files > 0 && info.f_favail < need.files;
  if (few_inodes) {
    return Error{ErrorCode::kNoSpace,
                 fmt::format("{} files are to be made in {}, and its disk has room for {} more",
                             format_count(need.files), shown(destination), format_count(info.f_favail)),
                 "free some files there, or read the archive in place"};
  }
  if (need.bytes <= *free && drive_bytes <= *free - need.bytes) return {};
  return Error{ErrorCode::kNoSpace,
               fmt::format("not enough space in {}: {}{} needed{}, {} free", shown(destination),
                           need.exact ? "" : "at least ", format_size(need.bytes),
                           drive_bytes > 0 ? fmt::format(" and {} for the drive's own copy of the archive",
                                                         format_size(drive_bytes))
                                           : "",
                           format_size(*free)),
               "free space there or stage to another disk; `stoker doctor` shows what is free"};
}

Status unpack(const fs::path& source, Packing packing, Target& target, Work& work) {
  if (packing == Packing::kFolder) return copy_folder(source, target, work);
  if (packing == Packing::kZip) return unzip(source, target, work);
  return untar(source, packing, target, work);
}

// A full disk in the middle: the system's words, and the numbers.
Status with_numbers(Status status, const fs::path& destination, const Target& target) {
  if (status || status.code() != ErrorCode::kNoSpace) return status;
  const auto free = FileSystem::real().free_bytes(destination);
  Error error = status.error();
  error.message += fmt::format("; {} in {} files were unpacked and removed again", format_size(target.bytes()),
                               format_count(target.files()));
  error.hint = fmt::format("{} had {} left then; free space there or stage to another disk", shown(destination),
                           free ? format_size(*free) : "nothing known");
  return error;
}

// S06: the count that the archive's own directory gives.
Status check_count(const Need& need, const Target& target, const Work& work) {
  if (!need.exact || work.skipped > 0 || (need.files == target.files() && need.bytes <= target.bytes())) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} lists {} files of {} and gave {} of {}", work.source, format_count(need.files),
                           format_size(need.bytes), format_count(target.files()), format_size(target.bytes())),
               "two members have one name, or the source changed while it was read"};
}

Status settle(Place& place, const SourceIdentity& identity, Target& target, StageResult& result) {
  STOKER_TRY(target.finish());
  auto top = place.move_in(identity);
  if (!top) return top.error();
  result.files = target.files();
  result.bytes = target.bytes();
  return place.record(identity, {result.kind, result.files, result.bytes, std::move(*top)});
}

// Keeps the whole members of an archive that is cut short, without a record: the next call starts anew.
Status keep_whole_members(Place& place, const SourceIdentity& identity, Target& target, Error error) {
  Status moved = target.finish();
  if (moved) moved = place.move_in(identity).status();
  if (!moved) return moved;
  error.message +=
      fmt::format("; {} whole files ({}) were kept", format_count(target.files()), format_size(target.bytes()));
  return error;
}

Status run(const fs::path& source, Packing packing, SourceIdentity identity, const StageOptions& options,
           StageResult& result) {
  const fs::path& destination = result.destination;
  const auto need = need_of(source, packing, identity);
  if (!need) return need.error();
  if (packing == Packing::kFolder) {  // a folder's own size and time say nothing of what lies deeper
    identity.size_bytes = need->bytes;
    identity.modified_ns = need->newest_ns;
  }
  auto place = Place::open(destination);
  if (!place) return place.error();
  if (const auto earlier = place->completed(identity)) {
    result.already = true;
    result.files = earlier->files;
    result.bytes = earlier->bytes;
    return {};
  }
  if (place->found_leftover() && options.notice) {
    options.notice(Severity::kInfo, "removed what an unfinished stage had left; starting anew");
  }
  STOKER_TRY(check_space(destination, *need, drive_copy(source, identity, packing), options.force));

  Target target(place->part());
  Work work;
  work.source = shown(source);
  work.threads = options.threads > 0 ? options.threads : std::min(kMostThreads, machine::cpu_facts().usable);
  work.cancelled = options.cancelled;
  work.notice = options.notice;
  work.progress = options.progress;
  work.total = need->exact ? need->bytes : identity.size_bytes;
  Status status = unpack(source, packing, target, work);
  if (status) status = check_count(*need, target, work);
  result.skipped = work.skipped;
  if (!status && status.code() == ErrorCode::kCorrupt && options.keep_partial) {
    return keep_whole_members(*place, identity, target, status.error());
  }
  if (!status) return with_numbers(std::move(status), destination, target);
  return with_numbers(settle(*place, identity, target, result), destination, target);
}

}  // namespace

Result<StageResult> stage(const fs::path& source, const fs::path& destination, const StageOptions& options) {
  const auto start = Clock::real().monotonic();
  if (source.native().find("://") != std::string::npos) {
    return Error{ErrorCode::kUnsupported,
                 shown(source) + " is an address, and only files and folders can be staged yet",
                 "download it first: `curl -L -C - -O " + shown(source) + "`"};
  }
  const auto identity = identify(source);
  if (!identity) return identity.error();
  const auto packing = sniff(source);
  if (!packing) return packing.error();
  STOKER_TRY(check_places(source, destination, *packing));
  STOKER_TRY(check_mount(destination, options));

  StageResult result;
  result.destination = destination;
  result.kind = name(*packing);
  STOKER_TRY(run(source, *packing, *identity, options, result));
  result.duration = Clock::real().monotonic() - start;
  return result;
}

}  // namespace stoker::feed
