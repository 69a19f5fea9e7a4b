#include <charconv>

#include <fmt/format.h>

#include "stoker/base/text.h"
#include "watch/doctor/checks.h"

namespace stoker::watch {
namespace {

// 203 for "2.3.1+cu121"; 0 when it is no version.
int release(const Signal<std::string>& version) {
  if (!version) return 0;
  const char* end = version.value->data() + version.value->size();
  int major = 0;
  int minor = 0;
  const auto dot = std::from_chars(version.value->data(), end, major);
  if (dot.ec != std::errc() || dot.ptr == end || *dot.ptr != '.') return 0;
  std::from_chars(dot.ptr + 1, end, minor);
  return major * 100 + minor;
}

}  // namespace

void check_python(const Facts& facts, DoctorFindings& findings) {
  const machine::PythonFacts& python = facts.python;
  if (!python.executable) {
    findings.push_back({"python", Fitness::kOdd, python.executable.why, "activate the environment that training uses"});
    return;
  }
  if (!python.torch) {
    findings.push_back({"python", Fitness::kOdd,
                        fmt::format("{} has no torch", printable(python.executable.value->native())),
                        "activate the environment that training uses, or `pip install torch`"});
  }
  const int torch = release(python.torch);
  if (torch > 0 && torch < 203 && release(python.numpy) >= 200) {
    findings.push_back(
        {"python", Fitness::kUnfit,
         fmt::format("torch {} was built for NumPy 1, and NumPy {} is installed: \"Numpy is not available\"",
                     printable(*python.torch), printable(*python.numpy)),
         "`pip install \"numpy<2\"`, or torch 2.3 or newer"});
  }
}

}  // namespace stoker::watch
