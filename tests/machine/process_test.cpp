// Counters of processes and of the cgroup, from small trees of /proc and /sys.
#include "stoker/machine/process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/temp_dir.h"

namespace stoker::machine {
namespace {

class ProcessTest : public ::testing::Test {
 protected:
  // proc(5)'s 52 fields, each of them its own number, but for the state and the parent.
  void process(int pid, int parent, const std::string& name = "python", char state = 'S') {
    std::string stat = std::to_string(pid) + " (" + name + ") " + state + " " + std::to_string(parent);
    for (int field = 5; field <= 52; ++field) stat += " " + std::to_string(field);
    root_.write(file(pid, "stat"), stat + "\n");
  }
  static std::string file(int pid, const std::string& name) { return "proc/" + std::to_string(pid) + "/" + name; }
  void cgroup(const std::string& file, const std::string& text) {
    root_.write("proc/self/cgroup", "0::/job\n");
    root_.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    root_.write("sys/fs/cgroup/" + file, text);
  }
  Root root() const { return {root_.path()}; }

  testing::TempDir root_;
};

TEST_F(ProcessTest, FieldsAreFoundBehindANameWithBlanksAndBrackets) {
  process(100, 7, "a) R 1 (b", 'D');
  const auto stat = process_stat(100, root());
  ASSERT_TRUE(stat) << stat.why;
  EXPECT_EQ((*stat).state, 'D');
  EXPECT_EQ((*stat).parent, 7);
  EXPECT_EQ((*stat).cpu_ticks, 14U + 15U);
  EXPECT_EQ((*stat).reaped_ticks, 16U + 17U);
  EXPECT_EQ((*stat).start_ticks, 22U);
  EXPECT_EQ((*stat).rss_bytes, 24U * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

TEST_F(ProcessTest, WhatIsMissingOrCutShortSaysWhy) {
  EXPECT_EQ(process_stat(100, root()).why, "no process 100");
  for (const char* text : {"", "100 (py", "100 (py) S 1 2"}) {
    root_.write(file(100, "stat"), text);
    EXPECT_EQ(process_stat(100, root()).why, "/proc/100/stat is not as proc(5) says") << text;
  }
  EXPECT_NE(process_io(100, root()).why, "");
  EXPECT_NE(process_pss_bytes(100, root()).why, "");
  EXPECT_NE(cgroup_throttling(root()).why, "");
  EXPECT_NE(cgroup_oom_kills(root()).why, "");
}

TEST_F(ProcessTest, StorageBytesAndProportionalMemoryAreRead) {
  root_.write(file(100, "io"), "rchar: 9\nread_bytes: 4096\nwrite_bytes: 12\ncancelled_write_bytes: 3\n");
  root_.write(file(100, "smaps_rollup"), "Rss:  9 kB\nPss:                2048 kB\nPss_Dirty: 1 kB\n");
  EXPECT_EQ((*process_io(100, root())).read_bytes, 4096U);
  EXPECT_EQ((*process_io(100, root())).write_bytes, 12U);
  EXPECT_EQ(*process_pss_bytes(100, root()), 2048U * 1024);
}

TEST_F(ProcessTest, DescendantsComeFromEveryThreadsChildren) {
  root_.write(file(100, "task/100/children"), "101 \n");
  root_.write(file(100, "task/150/children"), "102 ");
  root_.write(file(101, "task/101/children"), "103 ");
  EXPECT_EQ(descendants(100, root()), (std::vector{101, 102, 103}));
}

TEST_F(ProcessTest, WithoutChildrenListsTheTreeIsFoundByParents) {
  process(100, 1);
  process(101, 100);
  process(102, 101);
  process(200, 1);
  EXPECT_EQ(descendants(100, root()), (std::vector{101, 102}));
}

TEST_F(ProcessTest, AZombieAndALaterProcessOfThePidAreNotAlive) {
  process(100, 1);
  process(101, 1, "python", 'Z');
  EXPECT_TRUE(process_alive(100, 0, root()));
  EXPECT_TRUE(process_alive(100, 22, root()));
  EXPECT_FALSE(process_alive(100, 23, root()));
  EXPECT_FALSE(process_alive(101, 0, root()));
  EXPECT_FALSE(process_alive(102, 0, root()));
  EXPECT_FALSE(process_alive(0, 0, root()));
  EXPECT_TRUE(process_alive(::getpid()));
}

TEST_F(ProcessTest, ThrottlingIsThatOfTheInnermostGroupWithAQuota) {
  cgroup("job/cpu.stat", "usage_usec 5\nnr_periods 0\nnr_throttled 0\n");
  EXPECT_EQ(cgroup_throttling(root()).why, "no CPU quota is enforced on this cgroup");
  cgroup("cpu.stat", "usage_usec 5\nnr_periods 20\nnr_throttled 8\nthrottled_usec 1\n");
  EXPECT_EQ((*cgroup_throttling(root())).periods, 20U);
  EXPECT_EQ((*cgroup_throttling(root())).throttled, 8U);
}

TEST_F(ProcessTest, KillsForMemoryAreCountedInBothVersionsFiles) {
  cgroup("job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_EQ(*cgroup_oom_kills(root()), 2U);
  cgroup("job/memory.events", "low 0\noom 4\noom_kill 3\noom_group_kill 0\n");
  EXPECT_EQ(*cgroup_oom_kills(root()), 3U);
}

}  // namespace
}  // namespace stoker::machine
