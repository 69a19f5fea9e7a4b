// The checks, one file each. To add one: its file, a line here, a line in doctor.cpp, a line in CMakeLists.txt.
#pragma once

#include <vector>

#include "watch/doctor/facts.h"

namespace stoker::watch {

using DoctorFindings = std::vector<DoctorFinding>;

void check_gpu_presence(const Facts& facts, DoctorFindings& findings);
void check_gpu_driver(const Facts& facts, DoctorFindings& findings);
void check_gpu_architecture(const Facts& facts, DoctorFindings& findings);
void check_gpu_features(const Facts& facts, DoctorFindings& findings);
void check_gpu_memory(const Facts& facts, DoctorFindings& findings);
void check_cpu_quota(const Facts& facts, DoctorFindings& findings);
void check_memory(const Facts& facts, DoctorFindings& findings);
void check_shm(const Facts& facts, DoctorFindings& findings);
void check_disk(const Facts& facts, DoctorFindings& findings);
void check_mounts(const Facts& facts, DoctorFindings& findings);
void check_python(const Facts& facts, DoctorFindings& findings);

}  // namespace stoker::watch
