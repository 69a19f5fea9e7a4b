// How fast Stoker decodes and transforms the pictures of a recorded run, measured on this machine at the end of the
// run.
#pragma once

#include "stoker/base/json.h"
#include "stoker/base/status.h"

namespace stoker::cli {

// Images per CPU-second of one thread, on a sample of the training set that run.json names, through the very transforms
// that accelerate would give its loader ("recipe"). At most about a second and a half of CPU time.
// Unavailable: the loaders were not recorded, accelerate does not take the loader, or too few of its files can be read.
Signal<double> measure_loader_rate(const Json& run);

}  // namespace stoker::cli
