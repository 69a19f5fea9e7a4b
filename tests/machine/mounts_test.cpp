// Mounts and /dev/shm on recorded machines.
#include <gtest/gtest.h>

#include "machine/mountinfo.h"
#include "machine/proc.h"
#include "stoker/machine/machine.h"
#include "support/recorded_machine.h"

namespace stoker::machine {
namespace {

using testing::recorded;

// Case S10: Kaggle's input is read-only by design.
TEST(MountsTest, ReadOnlyInputIsSeen) {
  const auto mount = mount_of("/kaggle/input/leaves/train", recorded("kaggle-p100"));
  ASSERT_TRUE(mount.ok());
  EXPECT_TRUE(mount->read_only);
  EXPECT_EQ(mount->point, "/kaggle/input");
  EXPECT_FALSE(mount_of("/kaggle/working/out", recorded("kaggle-p100"))->read_only);
}

TEST(MountsTest, MountedDriveIsFuse) {
  const auto mount = mount_of("/content/drive/MyDrive/leaf.zip", recorded("colab"));
  ASSERT_TRUE(mount.ok());
  EXPECT_EQ(mount->kind, MountKind::kFuse);
  EXPECT_TRUE(is_remote(mount->kind));
  EXPECT_EQ(mount_of("/content/drives", recorded("colab"))->kind, MountKind::kOverlay);
}

TEST(MountsTest, NetworkFileSystemsAreNetwork) {
  EXPECT_EQ(mount_of("/home/me", recorded("v2-nested"))->kind, MountKind::kNetwork);
  EXPECT_EQ(mount_of("/scratch", recorded("v2-nested"))->kind, MountKind::kNetwork);
  EXPECT_EQ(mount_of("/opt", recorded("v2-nested"))->kind, MountKind::kLocal);
}

TEST(MountsTest, OctalEscapesAreUndone) {
  EXPECT_EQ(mount_of("/mnt/my disk/a", recorded("no-cgroup"))->point, "/mnt/my disk");
  EXPECT_EQ(undo_octal("a\\040b\\134c\\11"), "a b\\c\\11");
}

TEST(MountsTest, LinesThatAreNoMountsAreLeftOut) {
  EXPECT_FALSE(parse_mountinfo_line(""));
  EXPECT_FALSE(parse_mountinfo_line("1 2 3:4 / / rw"));
  EXPECT_FALSE(parse_mountinfo_line("1 2 3:4 / / rw - ext4"));
  EXPECT_TRUE(parse_mountinfo_line("1 2 3:4 / / rw shared:1 master:2 - ext4 /dev/sda1 rw"));
}

TEST(MountsTest, NoMountinfoIsAnError) { EXPECT_EQ(mounts(recorded("there-is-none")).code(), ErrorCode::kIo); }

TEST(MountsTest, ThisMachineHasARoot) { EXPECT_TRUE(mount_of("/").ok()); }

// Case M10: Docker gives 64 MB unless told otherwise.
TEST(ShmFactsTest, SizeIsReadFromTheMount) {
  EXPECT_EQ(*shm_facts(recorded("docker-v1")).size, 65536ULL * 1024);
  EXPECT_FALSE(shm_facts(recorded("no-cgroup")).size);
  EXPECT_EQ(shm_facts(recorded("no-cgroup")).size.why, "no tmpfs at /dev/shm");
}

TEST(CpuListTest, RangesAndGarbage) {
  EXPECT_EQ(parse_cpu_list("0-2,8"), (std::set<int>{0, 1, 2, 8}));
  EXPECT_TRUE(parse_cpu_list("").empty());
  EXPECT_TRUE(parse_cpu_list("3-1").empty());
  EXPECT_TRUE(parse_cpu_list("0-99999999999").empty());
  EXPECT_TRUE(parse_cpu_list("a").empty());
}

}  // namespace
}  // namespace stoker::machine
