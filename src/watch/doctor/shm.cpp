#include <fmt/format.h>

#include "stoker/base/units.h"
#include "watch/doctor/checks.h"

namespace stoker::watch {
namespace {

// A batch of 64 float pictures of 224 × 224; a worker holds two, and one more is on its way.
constexpr std::uint64_t kBatch = std::uint64_t{64} * 3 * 224 * 224 * 4;
constexpr std::uint64_t kBatchesPerWorker = 3;

}  // namespace

// DataLoader workers hand their batches over through /dev/shm; when it is full they die of SIGBUS, perhaps in epoch 2.
void check_shm(const Facts& facts, DoctorFindings& findings) {
  if (!facts.shm.size) {
    findings.push_back({"shm", Fitness::kOdd, "/dev/shm: " + facts.shm.size.why,
                        "DataLoader workers may need torch.multiprocessing.set_sharing_strategy(\"file_system\"); "
                        "stoker.ImageLoader needs no shared memory"});
    return;
  }
  const std::uint64_t workers = *facts.shm.size / (kBatch * kBatchesPerWorker);
  if (workers >= static_cast<std::uint64_t>(facts.cpu.usable)) return;
  const std::string enough =
      workers == 0 ? "not even one DataLoader worker" : fmt::format("{} DataLoader workers", workers);
  findings.push_back(
      {"shm", Fitness::kOdd,
       fmt::format("/dev/shm has {}: enough for {} at batch 64 of 224 x 224 floats ({} a worker)",
                   format_size(*facts.shm.size), enough, format_size(kBatch * kBatchesPerWorker)),
       "start the container with --shm-size=8g or --ipc=host, or use stoker.ImageLoader, which needs none"});
}

}  // namespace stoker::watch
