// Whose machine this is, guessed from files and environment variables.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "stoker/machine/machine.h"

namespace stoker::machine {

// Looks up an environment variable; tests pass their own.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment process_environment();

enum class Host { kPlain, kColab, kKaggle, kSageMaker, kSlurm, kWsl };
const char* name(Host host);

struct PlatformFacts {
  Host host = Host::kPlain;
  std::string container;  // "", "docker", "podman", "kubernetes", "container" (kind not known)
  bool gvisor = false;
  std::string why;  // what gave it away: "COLAB_RELEASE_TAG", "/.dockerenv"; "" when nothing did
};
PlatformFacts platform_facts(const Root& root = {}, const Environment& environment = process_environment());

// "Colab (docker, gVisor)", "plain Linux".
std::string describe(const PlatformFacts& platform);

}  // namespace stoker::machine
