// Platform and Python facts on recorded machines and made-up folders.
#include <gtest/gtest.h>

#include <map>

#include "stoker/machine/platform.h"
#include "stoker/machine/python.h"
#include "support/recorded_machine.h"
#include "support/temp_dir.h"

namespace stoker::machine {
namespace {

using testing::recorded;

Environment variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found != values.end() ? std::optional(found->second) : std::nullopt;
  };
}

TEST(PlatformTest, ColabIsKnownByItsFiles) {
  const auto platform = platform_facts(recorded("colab"), variables({}));
  EXPECT_EQ(describe(platform), "Colab (docker)");
  EXPECT_EQ(platform.why, "/content/sample_data, /.dockerenv");
}

TEST(PlatformTest, KaggleIsKnownByItsInput) {
  EXPECT_EQ(platform_facts(recorded("kaggle-p100"), variables({})).host, Host::kKaggle);
}

TEST(PlatformTest, KubernetesIsKnownByItsGroup) {
  EXPECT_EQ(describe(platform_facts(recorded("v2-host-path"), variables({}))), "plain Linux (kubernetes)");
}

TEST(PlatformTest, JobsAreKnownByTheirVariables) {
  EXPECT_EQ(platform_facts(recorded("v2-nested"), variables({{"SLURM_JOB_ID", "7"}})).host, Host::kSlurm);
}

TEST(PlatformTest, NothingFoundIsPlain) {
  const auto platform = platform_facts(recorded("no-cgroup"), variables({}));
  EXPECT_EQ(describe(platform), "plain Linux");
  EXPECT_EQ(platform.why, "");
}

TEST(PlatformTest, GVisorIsKnownByItsKernel) {
  const testing::TempDir dir;
  dir.write("proc/version", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n");
  EXPECT_TRUE(platform_facts({dir.path()}, variables({})).gvisor);
}

TEST(PythonFactsTest, KagglesImageIsRead) {
  const auto facts = python_facts(recorded("kaggle-p100"), variables({}), "/usr/local/bin/python3.12");
  EXPECT_EQ(*facts.version, "3.12");
  EXPECT_EQ(*facts.torch, "2.10.0+cu128");
  EXPECT_EQ(*facts.torch_cuda, "12.8");
  EXPECT_EQ(*facts.torchvision, "0.25.0+cu128");
  EXPECT_EQ(*facts.numpy, "2.3.5");
  EXPECT_EQ(*facts.pillow, "12.0.0");
}

TEST(PythonFactsTest, VenvComesBeforeThePath) {
  const testing::TempDir dir;
  dir.write("usr/bin/python3", "");
  dir.write("env/bin/python", "");
  dir.write("env/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.7\n");
  dir.write("env/lib/python3.11/site-packages/Pillow-9.4.0.dist-info/METADATA", "");
  dir.write("env/lib/python3.11/site-packages/pillow_heif-1.0.dist-info/METADATA", "");
  dir.write("env/lib/python3.11/site-packages/torch/version.py",
            "__version__ = '2.1.0+cpu'\ncuda = None\nhip = None\n");
  const auto facts = python_facts({dir.path()}, variables({{"VIRTUAL_ENV", "/env"}, {"PATH", "/usr/bin"}}));
  EXPECT_EQ(*facts.executable, "/env/bin/python");
  EXPECT_EQ(facts.kind, "venv");
  EXPECT_EQ(*facts.version, "3.11.7");
  EXPECT_EQ(*facts.pillow, "9.4.0");
  EXPECT_EQ(facts.torch_cuda.why, "CPU build");
  EXPECT_EQ(facts.numpy.why, "not installed");
}

TEST(PythonFactsTest, VenvWithSystemPackagesSeesBoth) {
  const testing::TempDir dir;
  dir.write("env/bin/python", "");
  dir.write("env/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = true\nversion = 3.11.2\n");
  dir.write("usr/local/lib/python3.11/dist-packages/torch-2.4.0.dist-info/METADATA", "");
  dir.write("usr/lib/python3/dist-packages/numpy-1.24.2.dist-info/METADATA", "");
  const auto facts = python_facts({dir.path()}, variables({{"VIRTUAL_ENV", "/env"}}));
  EXPECT_EQ(*facts.torch, "2.4.0");
  EXPECT_EQ(*facts.numpy, "1.24.2");
}

TEST(PythonFactsTest, PyenvShimsAreLookedThrough) {
  const testing::TempDir dir;
  dir.write("pyenv/shims/python", "#!/bin/sh\n");
  dir.write("pyenv/version", "3.12.4\n");
  dir.write("pyenv/versions/3.12.4/bin/python3", "");
  dir.write("pyenv/versions/3.12.4/lib/python3.12/os.py", "");
  dir.write("pyenv/versions/3.12.4/include/python3.12/patchlevel.h", "#define PY_VERSION      \t\"3.12.4\"\n");
  dir.write("pyenv/versions/3.12.4/lib/python3.12/site-packages/numpy-2.1.0.dist-info/METADATA", "");
  const auto facts = python_facts({dir.path()}, variables({{"PATH", "/pyenv/shims:/usr/bin"}}));
  EXPECT_EQ(*facts.executable, "/pyenv/versions/3.12.4/bin/python3");
  EXPECT_EQ(*facts.version, "3.12.4");
  EXPECT_EQ(*facts.numpy, "2.1.0");
}

TEST(PythonFactsTest, NoPythonSaysWhereItLooked) {
  const auto facts = python_facts(recorded("docker-v1"), variables({{"PATH", "/usr/bin"}}));
  EXPECT_FALSE(facts.executable);
  EXPECT_EQ(facts.executable.why, "no python in $VIRTUAL_ENV, $CONDA_PREFIX or $PATH");
  EXPECT_EQ(facts.torch.why, "no Python");
}

}  // namespace
}  // namespace stoker::machine
