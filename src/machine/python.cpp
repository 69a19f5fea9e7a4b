#include "stoker/machine/python.h"

#include <algorithm>
#include <cctype>
#include <system_error>

#include "machine/proc.h"
#include "stoker/base/text.h"

namespace stoker::machine {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// "Pillow_Heif" and "pillow-heif" are one name (PEP 503).
std::string normalised(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    out += lower == '_' || lower == '.' ? '-' : lower;
  }
  return out;
}

std::vector<std::string> split_path(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(':', start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

// What pyenv's shims, which are shell scripts, would start: PYENV/shims → PYENV/versions/3.11.7/bin.
std::optional<fs::path> pyenv_directory(const Root& root, const Environment& environment, const fs::path& shims) {
  if (shims.filename() != "shims") return std::nullopt;
  const auto global = read_text(root / (shims.parent_path() / "version"));
  const std::string chosen = environment("PYENV_VERSION").value_or(global.value_or(""));
  const std::string version(trim(chosen.substr(0, chosen.find_first_of(":\n"))));
  return version.empty() ? std::nullopt : std::optional(shims.parent_path() / "versions" / version / "bin");
}

std::optional<fs::path> find_python(const Root& root, const Environment& environment, std::string& kind) {
  const auto in = [&](const fs::path& folder) -> std::optional<fs::path> {
    const fs::path directory = root.is_this_machine() ? fs::absolute(folder) : folder;
    for (const char* name : {"python", "python3"}) {
      if (is_there(root / (directory / name))) return directory / name;
    }
    return std::nullopt;
  };
  for (const auto& [variable, what] : {std::pair("VIRTUAL_ENV", "venv"), std::pair("CONDA_PREFIX", "conda")}) {
    const auto prefix = environment(variable);
    if (!prefix || prefix->empty()) continue;
    if (auto python = in(fs::path(*prefix) / "bin")) {
      kind = what;
      return python;
    }
  }
  for (const std::string& directory : split_path(environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin"))) {
    if (const auto real = pyenv_directory(root, environment, directory)) {
      if (auto python = in(*real)) return python;
    }
    if (auto python = in(directory)) return python;
  }
  return std::nullopt;
}

// "python3.12", the name at the end of the chain of links that starts at `executable`.
std::string versioned_name(const Root& root, fs::path executable) {
  for (int hop = 0; hop < 16; ++hop) {
    const std::string name = executable.filename();
    if (name.rfind("python3.", 0) == 0) return name;
    std::error_code error;
    const fs::path target = fs::read_symlink(root / executable, error);
    if (error) break;
    executable = target.is_absolute() ? target : (executable.parent_path() / target).lexically_normal();
  }
  return "";
}

// "3.12" from the library folder of a prefix, when the executable's name does not say it.
std::string minor_from_library(const Root& root, const fs::path& prefix) {
  std::error_code error;
  for (fs::directory_iterator it(root / (prefix / "lib"), error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.rfind("python3.", 0) == 0 && is_there(it->path() / "os.py")) return name.substr(6);
  }
  return "";
}

// CPython's header names the patch level; a venv's pyvenv.cfg does as well.
std::string full_version(const Root& root, const fs::path& prefix, const std::string& minor) {
  const auto header = read_text(root / (prefix / "include" / ("python" + minor) / "patchlevel.h"));
  const auto line = header ? value_of(*header, "#define PY_VERSION ") : std::nullopt;
  if (!line) return minor;
  const std::size_t open = line->find('"');
  const std::size_t close = line->rfind('"');
  return open == close ? minor : std::string(line->substr(open + 1, close - open - 1));
}

// "key = value" lines of pyvenv.cfg.
std::string setting(std::string_view config, std::string_view key) {
  for (const std::string_view line : split_lines(config)) {
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos && trim(line.substr(0, equals)) == key) {
      return std::string(trim(line.substr(equals + 1)));
    }
  }
  return "";
}

class Search {
 public:
  Search(const Root& root, const Environment& environment, PythonFacts& facts)
      : root_(root), environment_(environment), facts_(facts) {}

  void run(const fs::path& executable) {
    const fs::path prefix = executable.parent_path().parent_path();
    if (const auto config = read_text(root_ / (prefix / "pyvenv.cfg"))) {
      facts_.kind = "venv";
      from_venv(prefix, *config);
      return;
    }
    if (is_there(root_ / (prefix / "conda-meta"))) facts_.kind = "conda";
    std::string minor = versioned_name(root_, executable);
    minor = minor.empty() ? minor_from_library(root_, prefix) : minor.substr(6);
    if (minor.empty()) {
      facts_.version = Signal<std::string>::unavailable("no name or folder under " + prefix.native() + " says it");
      return;
    }
    facts_.version = full_version(root_, base_prefix(executable), minor);
    add_python_path();
    add_user_packages(minor);
    add_packages_of(prefix, minor);
  }

 private:
  // Where the files of a linked interpreter lie: /opt/py/bin/python3 → …/versions/3.11.7.
  fs::path base_prefix(const fs::path& executable) const {
    std::error_code error;
    const fs::path real = root_.is_this_machine() ? fs::canonical(executable, error) : executable;
    return (error ? executable : real).parent_path().parent_path();
  }

  void from_venv(const fs::path& prefix, const std::string& config) {
    std::string version = setting(config, "version");
    if (version.empty()) version = setting(config, "version_info");
    const std::string minor = minor_of(version);
    facts_.version = version.empty() ? Signal<std::string>::unavailable("pyvenv.cfg names no version")
                                     : Signal<std::string>(version);
    add_python_path();
    add(prefix / "lib" / ("python" + minor) / "site-packages");
    if (setting(config, "include-system-site-packages") != "true") return;
    add_user_packages(minor);
    add_packages_of(fs::path(setting(config, "home")).parent_path(), minor);
  }

  static std::string minor_of(const std::string& version) {
    const std::size_t first = version.find('.');
    return first == std::string::npos ? version : version.substr(0, version.find('.', first + 1));
  }

  void add(const fs::path& directory) {
    if (is_there(root_ / directory)) facts_.packages.push_back(root_ / directory);
  }
  void add_python_path() {
    for (const std::string& part : split_path(environment_("PYTHONPATH").value_or(""))) add(part);
  }
  void add_user_packages(const std::string& minor) {
    if (const auto home = environment_("HOME")) {
      add(fs::path(*home) / ".local/lib" / ("python" + minor) / "site-packages");
    }
  }
  // Debian keeps pip's packages under /usr/local and its own under /usr/lib/python3.
  void add_packages_of(const fs::path& prefix, const std::string& minor) {
    const std::string library = "lib/python" + minor;
    if (prefix == "/usr") add(fs::path("/usr/local") / library / "dist-packages");
    add(prefix / library / "site-packages");
    add(prefix / library / "dist-packages");
    if (prefix == "/usr") add("/usr/lib/python3/dist-packages");
  }

  const Root& root_;
  const Environment& environment_;
  PythonFacts& facts_;
};

// `cuda: Optional[str] = '12.8'` or `cuda = None`, from torch/version.py.
std::string assigned(std::string_view source, std::string_view name) {
  for (const std::string_view line : split_lines(source)) {
    if (line.substr(0, name.size()) != name) continue;
    const std::string_view rest = line.substr(name.size());
    if (rest.empty() || (rest[0] != ':' && rest[0] != ' ' && rest[0] != '=')) continue;
    const std::size_t equals = rest.find('=');
    if (equals == std::string_view::npos) continue;
    std::string_view value = trim(rest.substr(equals + 1));
    if (value.size() < 2 || (value.front() != '\'' && value.front() != '"')) return "";
    return std::string(value.substr(1, value.find(value.front(), 1) - 1));
  }
  return "";
}

Signal<std::string> torch_cuda(const std::vector<fs::path>& packages) {
  for (const fs::path& directory : packages) {
    const auto source = read_text(directory / "torch/version.py");
    if (!source) continue;
    if (const std::string cuda = assigned(*source, "cuda"); !cuda.empty()) return cuda;
    const std::string hip = assigned(*source, "hip");
    return Signal<std::string>::unavailable(hip.empty() ? "CPU build" : "ROCm build " + hip);
  }
  return Signal<std::string>::unavailable("no torch");
}

}  // namespace

Signal<std::string> installed_version(const std::vector<fs::path>& packages, const std::string& name) {
  constexpr std::string_view kSuffix = ".dist-info";
  for (const fs::path& directory : packages) {
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
      const std::string entry = it->path().filename();
      const std::size_t dash = entry.find('-');
      if (dash == std::string::npos || entry.size() < dash + kSuffix.size()) continue;
      if (entry.compare(entry.size() - kSuffix.size(), kSuffix.size(), kSuffix) != 0) continue;
      if (normalised(std::string_view(entry).substr(0, dash)) != normalised(name)) continue;
      return entry.substr(dash + 1, entry.size() - kSuffix.size() - dash - 1);
    }
  }
  return Signal<std::string>::unavailable("not installed");
}

PythonFacts python_facts(const Root& root, const Environment& environment, const fs::path& python) {
  PythonFacts facts;
  facts.kind = "system";
  auto executable = python.empty() ? find_python(root, environment, facts.kind) : std::optional(python);
  // A relative one is meant from the current folder; a link stays one, since a venv is found beside it.
  if (executable && root.is_this_machine()) executable = fs::absolute(*executable);
  if (!executable || !is_there(root / *executable)) {
    facts.executable = Signal<fs::path>::unavailable("no python in $VIRTUAL_ENV, $CONDA_PREFIX or $PATH");
    if (!python.empty()) facts.executable.why = python.native() + " is not there";
    facts.version = facts.torch = facts.torch_cuda = facts.torchvision = facts.numpy = facts.pillow =
        Signal<std::string>::unavailable("no Python");
    return facts;
  }
  facts.executable = *executable;
  Search(root, environment, facts).run(*executable);
  facts.torch = installed_version(facts.packages, "torch");
  facts.torch_cuda = torch_cuda(facts.packages);
  facts.torchvision = installed_version(facts.packages, "torchvision");
  facts.numpy = installed_version(facts.packages, "numpy");
  facts.pillow = installed_version(facts.packages, "pillow");
  return facts;
}

}  // namespace stoker::machine
