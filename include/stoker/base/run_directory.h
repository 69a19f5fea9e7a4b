// The folder that a recorded run leaves: `$STOKER_RUNS (default ./runs)/<UTC>-<name>-<4 hex>/` with run.json in it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "stoker/base/clock.h"
#include "stoker/base/files.h"
#include "stoker/base/json.h"
#include "stoker/base/status.h"

namespace stoker {

// $STOKER_RUNS, else "runs" under the current directory.
std::filesystem::path runs_root();

// A new, empty run folder under `root`, made if missing. `name` is cut down to letters, digits, dot and dash.
Result<std::filesystem::path> create_run_directory(const std::filesystem::path& root, std::string_view name,
                                                   const Clock& clock = Clock::real());

// "" is the newest run under `root` (by the time of its run.json); else a path, a folder's name, or a unique beginning
// or ending of one. Errors: kNotFound (with the nearest name), kBadInput (several match, all named).
Result<std::filesystem::path> find_run(const std::filesystem::path& root, std::string_view spec);

// run.json, replaced durably. Errors: as write_file_durably; kNotFound, kCorrupt.
Status write_run_json(FileSystem& fs, const std::filesystem::path& run, const Json& value);
Result<Json> read_run_json(FileSystem& fs, const std::filesystem::path& run);

}  // namespace stoker
