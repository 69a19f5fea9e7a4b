// Steps and epochs, cut out of the timeline.
#pragma once

#include <vector>

#include "watch/metrics/timeline.h"

namespace stoker::watch {

std::vector<Step> find_steps(const Timeline& timeline);
std::vector<Epoch> find_epochs(const Timeline& timeline, const std::vector<Step>& steps);

}  // namespace stoker::watch
