// What pip puts on the PATH as `stoker`: finds the real command inside the package and becomes it.
//
// The real one lies in the package (stoker/bin/stoker) because it needs the libraries that a release wheel carries
// beside the package, at a place relative to itself; pip's bin/ has no such place, and a Python script there would cost
// each start 20 ms and more. This program needs the C library alone, and costs one.
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstring>

namespace {

using Path = std::array<char, PATH_MAX>;

// Where pip puts packages, seen from its bin/: per Python version, Debian's own, and `pip install --target`.
constexpr std::array kPlaces = {"lib/python3*/site-packages", "lib64/python3*/site-packages",
                                "lib/python3*/dist-packages", "local/lib/python3*/dist-packages", "."};

bool newer(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

// The folder above the one that holds this program, or "" where it cannot be read.
Path prefix() {
  Path path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  path[length < 0 ? 0 : static_cast<std::size_t>(length)] = '\0';
  for (int level = 0; level < 2; ++level) {
    if (char* slash = std::strrchr(path.data(), '/')) *slash = '\0';
  }
  return path;
}

// Two Pythons may share one bin/. pip wrote this launcher with the package that it installed last: the newest is meant.
Path newest_command(const Path& prefix) {
  Path found{};
  timespec found_at{};
  for (const char* place : kPlaces) {
    Path pattern{};
    const int length = std::snprintf(pattern.data(), pattern.size(), "%s/%s/stoker/bin/stoker", prefix.data(), place);
    if (length < 0 || static_cast<std::size_t>(length) >= pattern.size()) continue;
    glob_t matches{};
    if (::glob(pattern.data(), 0, nullptr, &matches) == 0) {
      for (std::size_t i = 0; i < matches.gl_pathc; ++i) {
        struct stat facts {};
        if (::stat(matches.gl_pathv[i], &facts) != 0 || !newer(facts.st_ctim, found_at)) continue;
        found_at = facts.st_ctim;
        std::snprintf(found.data(), found.size(), "%s", matches.gl_pathv[i]);
      }
    }
    ::globfree(&matches);
  }
  return found;
}

}  // namespace

int main(int, char** argv) {
  const Path where = prefix();
  const Path command = newest_command(where);
  if (command[0] != '\0') ::execv(command.data(), argv);
  std::fprintf(stderr,
               "error: the stoker package is not under %s, where its command was installed\n"
               "hint: `python -m stoker` runs the command of the package that this Python imports\n",
               where.data());
  return 1;
}
