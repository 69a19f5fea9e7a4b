// NVML through dlopen, against a stub library with settable answers.
#include <gtest/gtest.h>

#include <cstdlib>

#include "stoker/machine/gpu.h"

namespace stoker::machine {
namespace {

class NvmlTest : public ::testing::Test {
 protected:
  void SetUp() override { gpus("Tesla T4;75;16106127360;1000000000;400000000;30"); }
  void TearDown() override {
    for (const char* name : {"STUB_NVML_GPUS", "STUB_NVML_DRIVER", "STUB_NVML_CUDA", "STUB_NVML_INIT"})
      ::unsetenv(name);
  }
  static void gpus(const char* answer) { ::setenv("STUB_NVML_GPUS", answer, 1); }
  static Result<Nvml> open() { return Nvml::open(STUB_NVML); }
};

TEST_F(NvmlTest, DriverAndGpuAreDescribed) {
  const auto nvml = open();
  ASSERT_TRUE(nvml.ok()) << nvml.error().message;
  EXPECT_EQ(*nvml->driver_version(), "550.54.15");
  EXPECT_EQ(*nvml->driver_cuda_version(), 12040);
  const auto found = nvml->gpus();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "Tesla T4");
  EXPECT_EQ(*found[0].compute_capability, 75);
  EXPECT_EQ(*found[0].memory_bytes, 16106127360U);
  EXPECT_EQ(*found[0].memory_used_bytes, 1000000000U);
  EXPECT_EQ(*found[0].memory_of_processes_bytes, 400000000U);
  EXPECT_DOUBLE_EQ(*found[0].busy, 0.30);
}

TEST_F(NvmlTest, FunctionThatTheDriverLacksIsUnavailable) {
  const auto nvml = open();
  ASSERT_TRUE(nvml.ok());
  const auto found = nvml->gpus();
  EXPECT_FALSE(found[0].power_w);
  EXPECT_EQ(found[0].power_w.why, "this driver's NVML does not have it");
}

TEST_F(NvmlTest, FigureThatTheDriverRefusesSaysWhy) {
  gpus("GRID;75;-;-;-;-|Tesla T4;75;16106127360;0;0;0");
  const auto nvml = open();
  ASSERT_TRUE(nvml.ok());
  const auto found = nvml->gpus();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].memory_bytes.why, "Not Supported");
  EXPECT_EQ(found[0].memory_used_bytes.why, "Not Supported");
  EXPECT_EQ(found[0].busy.why, "Not Supported");
  EXPECT_TRUE(found[1].memory_bytes);
}

TEST_F(NvmlTest, DriverWithoutGpusHasNone) {
  gpus("");
  const auto nvml = open();
  ASSERT_TRUE(nvml.ok());
  EXPECT_TRUE(nvml->gpus().empty());
}

TEST_F(NvmlTest, DriverThatIsNotLoadedIsSaid) {
  ::setenv("STUB_NVML_INIT", "9", 1);
  const auto nvml = open();
  ASSERT_FALSE(nvml.ok());
  EXPECT_EQ(nvml.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(nvml.error().message, "the NVIDIA driver does not answer: Driver Not Loaded");
}

// Case D08: no GPU at all.
TEST_F(NvmlTest, AbsentLibraryIsSaidPlainly) {
  const auto nvml = Nvml::open("libthere-is-none.so.1");
  ASSERT_FALSE(nvml.ok());
  EXPECT_EQ(nvml.error().message, "no NVIDIA driver: libthere-is-none.so.1 is not on this machine");
}

TEST_F(NvmlTest, OtherLibraryIsRefused) {
  const auto nvml = Nvml::open("libc.so.6");
  ASSERT_FALSE(nvml.ok());
  EXPECT_EQ(nvml.error().message, "libc.so.6 is not an NVML library");
}

}  // namespace
}  // namespace stoker::machine
