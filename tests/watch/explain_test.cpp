// The list of causes is well-formed, the numbers of a log are read, and no log makes explain slow.
#include "stoker/watch/explain.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "watch/explain/causes.h"
#include "watch/explain/names.h"

namespace stoker::watch {
namespace {

std::string first_cause(std::string_view log) {
  const auto result = explain(log);
  return result.causes.empty() ? "" : result.causes.front().cause;
}

TEST(CausesTest, EmbeddedListIsWellFormed) {
  const auto list = parse_causes(kCausesJson);
  ASSERT_TRUE(list.ok()) << list.error().message;
  std::set<std::string> ids;
  for (const Cause& cause : list->causes) EXPECT_TRUE(ids.insert(cause.id).second) << cause.id;
  EXPECT_GE(ids.size(), 80U);
}

TEST(CausesTest, BrokenEntryIsNamed) {
  const auto list = parse_causes(R"({"causes": [{"id": "x", "rank": 1, "title": "t", "do": ["d"], "any": ["("]}]})");
  ASSERT_EQ(list.code(), ErrorCode::kCorrupt);
  EXPECT_EQ(list.error().message.substr(0, 9), "cause 'x'");
}

Names memory_of(std::string_view log) {
  Names names;
  read_gpu_memory(log, names);
  return names;
}

// Case M02: the trap. 12.73 + 9.35 GiB are still less than the 22.78 GiB asked for.
TEST(GpuMemoryTest, AdviceThatCannotHelpIsToldByItsSum) {
  const Names names = memory_of(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 31.47 "
      "GiB of "
      "which 12.73 GiB is free. Including non-PyTorch memory, this process has 18.73 GiB memory in use. Of the "
      "allocated "
      "memory 9.08 GiB is allocated by PyTorch, and 9.35 GiB is reserved by PyTorch but unallocated.");
  EXPECT_EQ(names.values.at("oom_advice_cannot_help").substr(0, 47), "12.73 free + 9.35 reserved but unused = 22.08 G");
  EXPECT_FALSE(names.has("oom_others"));
}

TEST(GpuMemoryTest, FragmentationOnlyWhereTheSumWouldBeEnough) {
  const Names names = memory_of(
      "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 14.76 GiB total capacity; 9.00 GiB already allocated; "
      "0.75 GiB "
      "free; 13.00 GiB reserved in total by PyTorch)");
  EXPECT_EQ(names.values.at("oom_fragmented"),
            "0.75 free + 4.00 reserved but unused = 4.75 GiB would be enough for 2.00 GiB.");
}

TEST(GpuMemoryTest, OldFormWithZeroBytesFreeIsRead) {
  const Names names = memory_of(
      "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 8.00 GiB total capacity; 7.20 GiB already allocated; 0 "
      "bytes "
      "free; 7.30 GiB reserved in total by PyTorch)");
  EXPECT_EQ(names.values.at("oom_numbers"),
            "20.00 MiB were asked for; 0 bytes of the card's 8.00 GiB were free, 7.20 GiB held by tensors, 102 MiB "
            "reserved by "
            "the allocator but unused.");
}

TEST(GpuMemoryTest, NeighboursAreAddedUp) {
  const Names names = memory_of(
      "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 15.00 GiB of which 100.00 MiB is "
      "free. "
      "Process 11 has 5.00 GiB memory in use. Process 12 has 2.50 GiB memory in use.");
  EXPECT_EQ(names.values.at("oom_others"),
            "Other processes hold 7.50 GiB of the card: process 11 holds 5.00 GiB, process 12 holds 2.50 GiB.");
}

// Cases D01 and D02: opposite directions, opposite remedies.
TEST(GpuArchitectureTest, OldAndNewAreToldApart) {
  EXPECT_EQ(first_cause(
                "Found GPU0 GeForce GTX 770 which is of cuda capability 3.0.\n    PyTorch no longer supports this GPU "
                "because it is too old.\n    The minimum cuda capability supported by this library is 3.7."),
            "gpu-too-old-for-build");
  EXPECT_EQ(first_cause(
                "NVIDIA B200 with CUDA capability sm_100 is not compatible with the current PyTorch installation.\nThe "
                "current PyTorch install supports CUDA capabilities sm_50 sm_80 sm_86 sm_90 compute_90."),
            "gpu-too-new-for-build");
  EXPECT_EQ(first_cause("RuntimeError: CUDA error: no kernel image is available for execution on the device"),
            "no-kernel-image");
}

TEST(ShapesTest, ChannelsAndSizesAreToldApart) {
  EXPECT_EQ(
      first_cause(
          "stack expects each tensor to be equal size, but got [4, 64, 64] at entry 0 and [3, 64, 64] at entry 1"),
      "mixed-channels");
  EXPECT_EQ(
      first_cause(
          "stack expects each tensor to be equal size, but got [3, 64, 80] at entry 0 and [3, 64, 64] at entry 1"),
      "different-sizes");
}

TEST(ExplainTest, UnknownTextHasNoCauseButItsLastError) {
  const auto result = explain("step 1\nFrobnicationError: the frob is out of nicks\nbye\n");
  EXPECT_TRUE(result.causes.empty());
  EXPECT_EQ(result.last_error, "FrobnicationError: the frob is out of nicks");
}

TEST(ExplainTest, ColoursAndProgressBarsAreSeenThrough) {
  const auto result = explain("10%|#   \r20%|##  \r\x1b[31mRuntimeError: CUDA error: unknown error\x1b[0m\n");
  ASSERT_FALSE(result.causes.empty());
  EXPECT_EQ(result.causes.front().cause, "unknown-cuda-error");
  EXPECT_EQ(result.causes.front().line, 3U);
  EXPECT_EQ(result.causes.front().quote, "RuntimeError: CUDA error: unknown error");
}

TEST(ExplainTest, HarmlessWarningIsOnlyTheAnswerWhereNothingElseIs) {
  EXPECT_EQ(
      first_cause("UserWarning: This DataLoader will create 104 worker processes in total. Our suggested max number of "
                  "worker in current system is 23, which is smaller"),
      "benign-warning");
  EXPECT_EQ(first_cause("FutureWarning: soon\nRuntimeError: CUDA error: device-side assert triggered"),
            "device-side-assert");
}

// A clock that moves a second at each look: the second entry is already too late.
class HastyClock final : public Clock {
 public:
  Nanoseconds monotonic() const override { return now_ += std::chrono::seconds(1); }
  Nanoseconds wall() const override { return Nanoseconds(0); }

 private:
  mutable Nanoseconds now_{0};
};

TEST(ExplainTest, TimeLimitIsKept) {
  const HastyClock clock;
  EXPECT_TRUE(explain("anything", {std::chrono::milliseconds(1500), &clock}).timed_out);
}

TEST(ExplainTest, AwkwardLogsAreHarmless) {
  for (const std::string& log :
       {std::string(), std::string(kMaxLog, '\0'), std::string(kMaxLog, '\n'), std::string(kMaxLog, '['),
        std::string(100000, '\xff') + "\x1b[",
        std::string("Tried to allocate 1e999 GiB out of memory CUDA out of memory Tried to allocate . GiB")}) {
    EXPECT_FALSE(explain(log).timed_out);
  }
}

TEST(ReadLogTest, LongLogKeepsItsHeadAndTail) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  if (::fork() == 0) {
    const std::string block(1 << 16, 'x');
    (void)!::write(ends[1], "first\n", 6);
    for (int i = 0; i < 100; ++i) (void)!::write(ends[1], block.data(), block.size());
    (void)!::write(ends[1], "\nlast", 5);
    ::_exit(0);
  }
  ::close(ends[1]);
  const auto log = read_log(ends[0]);
  ::close(ends[0]);
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->text.substr(0, 6), "first\n");
  EXPECT_EQ(log->text.substr(log->text.size() - 5), "\nlast");
  EXPECT_GT(log->left_out_bytes, 5'000'000U);
  EXPECT_LT(log->text.size(), kMaxLog + 100);
}

}  // namespace
}  // namespace stoker::watch
