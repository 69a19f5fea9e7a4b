#include "stoker/watch/doctor.h"

#include <algorithm>
#include <array>

#include "watch/doctor/checks.h"
#include "watch/doctor/facts.h"

namespace stoker::watch {
namespace {

using Check = void (*)(const Facts&, DoctorFindings&);

constexpr std::array<Check, 11> kChecks = {check_gpu_presence, check_gpu_driver, check_gpu_architecture,
                                           check_gpu_features, check_gpu_memory, check_cpu_quota,
                                           check_memory,       check_shm,        check_disk,
                                           check_mounts,       check_python};

}  // namespace

const char* name(Fitness fitness) { return fitness == Fitness::kUnfit ? "unfit" : "odd"; }

bool DoctorReport::fit() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const DoctorFinding& f) { return f.fitness == Fitness::kUnfit; });
}

DoctorReport doctor(const DoctorOptions& options) {
  const Facts facts = gather(options);
  DoctorReport report;
  report.machine = lines_of(facts);
  report.json = json_of(facts);
  for (const Check check : kChecks) check(facts, report.findings);
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const DoctorFinding& a, const DoctorFinding& b) { return a.fitness > b.fitness; });
  Json findings = Json::array();
  for (const DoctorFinding& finding : report.findings) {
    findings.push(Json::object({{"check", finding.check},
                                {"fitness", name(finding.fitness)},
                                {"what", finding.what},
                                {"advice", finding.advice}}));
  }
  report.json.set("fit", report.fit());
  report.json.set("findings", std::move(findings));
  return report;
}

}  // namespace stoker::watch
