#include "stoker/machine/platform.h"

#include <array>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "machine/proc.h"

namespace stoker::machine {
namespace {

class Guess {
 public:
  Guess(const Root& root, const Environment& environment) : root_(root), environment_(environment) {}

  bool has_variable(const char* name) { return note(environment_(name).has_value(), name); }
  bool has_file(const char* path) {
    std::error_code error;
    return note(std::filesystem::exists(root_ / path, error), path);
  }
  bool file_has(const char* path, std::string_view word) {
    const auto text = read_text(root_ / path);
    return note(text && text->find(word) != std::string::npos, path);
  }
  const std::string& why() const { return why_; }

 private:
  bool note(bool found, const char* what) {
    if (found) why_ += (why_.empty() ? "" : ", ") + std::string(what);
    return found;
  }

  const Root& root_;
  const Environment& environment_;
  std::string why_;
};

Host guess_host(Guess& guess) {
  if (guess.has_variable("KAGGLE_KERNEL_RUN_TYPE") || guess.has_file("/kaggle/input")) return Host::kKaggle;
  if (guess.has_variable("COLAB_RELEASE_TAG") || guess.has_file("/content/sample_data")) return Host::kColab;
  if (guess.has_variable("SM_TRAINING_ENV") || guess.has_file("/opt/ml/input")) return Host::kSageMaker;
  if (guess.has_variable("SLURM_JOB_ID")) return Host::kSlurm;
  if (guess.file_has("/proc/version", "microsoft")) return Host::kWsl;
  return Host::kPlain;
}

std::string guess_container(Guess& guess) {
  if (guess.has_variable("KUBERNETES_SERVICE_HOST")) return "kubernetes";
  if (guess.has_file("/.dockerenv")) return "docker";
  if (guess.has_file("/run/.containerenv")) return "podman";
  constexpr std::array<std::pair<const char*, const char*>, 4> kWords = {
      {{"kubepods", "kubernetes"}, {"docker", "docker"}, {"libpod", "podman"}, {"lxc", "container"}}};
  for (const auto& [word, kind] : kWords) {
    if (guess.file_has("/proc/self/cgroup", word)) return kind;
  }
  return guess.has_variable("container") ? "container" : "";
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
}

const char* name(Host host) {
  switch (host) {
    case Host::kColab:
      return "Colab";
    case Host::kKaggle:
      return "Kaggle";
    case Host::kSageMaker:
      return "SageMaker";
    case Host::kSlurm:
      return "Slurm";
    case Host::kWsl:
      return "WSL";
    case Host::kPlain:
      break;
  }
  return "plain Linux";
}

PlatformFacts platform_facts(const Root& root, const Environment& environment) {
  Guess guess(root, environment);
  PlatformFacts facts;
  facts.host = guess_host(guess);
  facts.container = guess_container(guess);
  // gVisor's kernel is its own; it calls itself 4.4.0, built at one fixed date.
  facts.gvisor = guess.file_has("/proc/version", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016");
  facts.why = guess.why();
  return facts;
}

std::string describe(const PlatformFacts& platform) {
  std::string inside = platform.container;
  if (platform.gvisor) inside += inside.empty() ? "gVisor" : ", gVisor";
  return name(platform.host) + (inside.empty() ? "" : " (" + inside + ")");
}

}  // namespace stoker::machine
