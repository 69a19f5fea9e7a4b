// CPUs and memory on recorded machines: a limit is the smaller of all limits.
#include <gtest/gtest.h>

#include "stoker/machine/machine.h"
#include "support/recorded_machine.h"

namespace stoker::machine {
namespace {

using testing::recorded;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// Case D05: --cpus 1.5 on a host of 96 cores, seen neither by cpu_count() nor by the affinity mask.
TEST(CpuFactsTest, FractionalQuotaInCgroupV1IsRoundedUp) {
  const CpuFacts cpu = cpu_facts(recorded("docker-v1"));
  EXPECT_EQ(cpu.online, 96);
  EXPECT_EQ(*cpu.affinity, 96);
  EXPECT_DOUBLE_EQ(*cpu.quota, 1.5);
  EXPECT_EQ(cpu.usable, 2);
  EXPECT_EQ(cpu.bound_by, "CPU quota of 1.5 in /sys/fs/cgroup/cpu,cpuacct");
}

TEST(CpuFactsTest, MinusOneInCgroupV1IsNoLimit) {
  const CpuFacts cpu = cpu_facts(recorded("v1-unlimited"));
  EXPECT_EQ(cpu.usable, 8);
  EXPECT_FALSE(cpu.quota);
  EXPECT_EQ(cpu.quota.why, "no CPU quota is set");
  EXPECT_EQ(cpu.bound_by, "online CPUs");
}

// Case D04: Colab has two CPUs, and no quota beside them.
TEST(CpuFactsTest, MaxInCgroupV2IsNoLimit) {
  const CpuFacts cpu = cpu_facts(recorded("colab"));
  EXPECT_EQ(cpu.usable, 2);
  EXPECT_FALSE(cpu.quota);
  EXPECT_EQ(cpu.model, "Intel(R) Xeon(R) CPU @ 2.20GHz");
}

TEST(CpuFactsTest, QuotaOfAnAncestorBinds) {
  const CpuFacts cpu = cpu_facts(recorded("v2-nested"));
  EXPECT_DOUBLE_EQ(*cpu.quota, 2.5);
  EXPECT_EQ(cpu.usable, 3);
  EXPECT_EQ(cpu.bound_by, "CPU quota of 2.5 in /sys/fs/cgroup/lab.slice/job-7");
}

TEST(CpuFactsTest, ContainerThatSeesItsGroupAsRootIsRead) { EXPECT_EQ(cpu_facts(recorded("v2-own-root")).usable, 8); }

// Half a core is one thread, never none; the group's name is the host's, which the mount does not have.
TEST(CpuFactsTest, GroupNamedAsTheHostSeesItFallsBackToTheMountPoint) {
  const CpuFacts cpu = cpu_facts(recorded("v2-host-path"));
  EXPECT_DOUBLE_EQ(*cpu.quota, 0.5);
  EXPECT_EQ(cpu.usable, 1);
}

TEST(CpuFactsTest, AffinityBindsWithoutAnyCgroup) {
  const CpuFacts cpu = cpu_facts(recorded("no-cgroup"));
  EXPECT_EQ(cpu.usable, 2);
  EXPECT_EQ(cpu.bound_by, "affinity");
  EXPECT_EQ(cpu.quota.why, "no cgroup with the cpu controller is visible");
}

TEST(CpuFactsTest, CpusetNarrowerThanTheMaskBinds) {
  const CpuFacts cpu = cpu_facts(recorded("v2-cpuset"));
  EXPECT_EQ(cpu.usable, 4);
  EXPECT_EQ(cpu.bound_by, "cpuset /sys/fs/cgroup/box");
}

TEST(CpuFactsTest, EmptyMachineHasOneCpuAndSaysWhatIsMissing) {
  const CpuFacts cpu = cpu_facts(recorded("there-is-none"));
  EXPECT_EQ(cpu.usable, 1);
  EXPECT_FALSE(cpu.affinity);
}

TEST(CpuFactsTest, ThisMachineHasAtLeastOneCpu) {
  const CpuFacts cpu = cpu_facts();
  EXPECT_GE(cpu.usable, 1);
  EXPECT_LE(cpu.usable, cpu.online);
}

TEST(MemoryFactsTest, RamBindsWhereNoGroupHasALimit) {
  const MemoryFacts memory = memory_facts(recorded("colab"));
  EXPECT_EQ(*memory.limit, 13290460ULL * 1024);
  EXPECT_EQ(*memory.left, 11500000ULL * 1024);
  EXPECT_EQ(memory.bound_by, "RAM");
}

TEST(MemoryFactsTest, PageCacheIsNotPressureInCgroupV1) {
  const MemoryFacts memory = memory_facts(recorded("docker-v1"));
  EXPECT_EQ(*memory.limit, 4 * kGiB);
  EXPECT_EQ(*memory.used, 2'000'000'000ULL);
  EXPECT_EQ(*memory.left, 4 * kGiB - 2'000'000'000ULL);
  EXPECT_EQ(memory.bound_by, "cgroup v1 /sys/fs/cgroup/memory");
  EXPECT_EQ(*memory.ram, 395000000ULL * 1024);
}

TEST(MemoryFactsTest, PageCacheIsNotPressureInCgroupV2) {
  const MemoryFacts memory = memory_facts(recorded("kaggle-p100"));
  EXPECT_EQ(*memory.limit, 30 * kGiB);
  EXPECT_EQ(*memory.used, 1'000'000'000ULL);
}

TEST(MemoryFactsTest, LimitOfAnAncestorBinds) {
  const MemoryFacts memory = memory_facts(recorded("v2-nested"));
  EXPECT_EQ(*memory.limit, 6 * kGiB);
  EXPECT_EQ(*memory.used, 4 * kGiB);
  EXPECT_EQ(*memory.left, 2 * kGiB);
  EXPECT_EQ(memory.bound_by, "cgroup v2 /sys/fs/cgroup/lab.slice");
}

TEST(MemoryFactsTest, HugeNumberInCgroupV1IsNoLimit) {
  EXPECT_EQ(memory_facts(recorded("v1-unlimited")).bound_by, "RAM");
}

TEST(MemoryFactsTest, EmptyMachineSaysWhy) {
  const MemoryFacts memory = memory_facts(recorded("there-is-none"));
  EXPECT_FALSE(memory.limit);
  EXPECT_FALSE(memory.left);
  EXPECT_EQ(memory.left.why, "neither RAM nor a cgroup can be read");
}

TEST(MemoryFactsTest, ThisMachineHasMemoryLeft) {
  const MemoryFacts memory = memory_facts();
  ASSERT_TRUE(memory.left);
  EXPECT_LE(*memory.left, *memory.limit);
}

TEST(LimitFactsTest, UnlimitedIsSaidAndNotANumber) {
  const LimitFacts limits = limit_facts(recorded("colab"));
  EXPECT_EQ(*limits.open_files, 1024U);
  EXPECT_FALSE(limits.file_size_bytes);
  EXPECT_EQ(limits.file_size_bytes.why, "unlimited");
}

}  // namespace
}  // namespace stoker::machine
