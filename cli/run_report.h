// A recorded run's report, with its metrics and verdict; where `stoker run`, `stoker report` and the notebook meet.
#pragma once

#include <filesystem>

#include "stoker/base/json.h"
#include "stoker/base/status.h"

namespace stoker::cli {

// Reads the run and gives its report document. The first time that an ended run is asked for, its metrics and its
// verdict, with the prediction, are written into its run.json; later calls show that verdict as it was written.
// A run whose recorder died is completed first.
// Errors: kNotFound, kCorrupt (run.json), kIo.
Result<Json> report_of(const std::filesystem::path& run);

// The comparison of two runs, kept in `after`'s run.json. Errors: as report_of; kBadInput (too few steps).
Result<Json> compare_runs(const std::filesystem::path& before, const std::filesystem::path& after);

}  // namespace stoker::cli
