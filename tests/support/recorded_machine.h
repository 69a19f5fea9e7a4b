// Recorded machines under tests/data/machines: small trees of /proc and /sys as they looked somewhere else.
#pragma once

#include <string>

#include "stoker/machine/machine.h"

namespace stoker::testing {

inline machine::Root recorded(const std::string& name) {
  return {std::string(STOKER_SOURCE_DIR) + "/tests/data/machines/" + name};
}

}  // namespace stoker::testing
