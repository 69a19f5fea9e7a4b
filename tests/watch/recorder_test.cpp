#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <thread>

#include "base/ring.h"
#include "stoker/base/run_directory.h"
#include "stoker/watch/recorder.h"
#include "stoker/watch/run_data.h"
#include "support/temp_dir.h"
#include "watch/recorder/drain.h"
#include "watch/recorder/outcome.h"
#include "watch/recorder/run_file.h"
#include "watch/recorder/sampler.h"

namespace stoker::watch {
namespace {

using testing::TempDir;

// --- what a killed recorder leaves ---

// A run whose recorder died: run.json says "running", the trace has what was drained, the ring the rest.
class RecoverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto ring = Ring::create(ring_path(), {.names = 16, .slots = 4, .capacity = 64});
    ASSERT_TRUE(ring.ok());
    ring_ = *ring;
    ASSERT_TRUE(events_attach(ring_path()).ok());
    leave_run(/*trainee=*/999'999'999);  // no such process
  }
  void TearDown() override { events_detach(); }

  std::string ring_path() const { return (run_ / "events.ring").string(); }
  void leave_run(int trainee) {
    const Json json = Json::object({{"schema", "stoker.run.v1"},
                                    {"ring", ring_path()},
                                    {"trainee_pid", trainee},
                                    {"command", Json::array()},
                                    {"outcome", Json::object({{"kind", "running"}})}});
    ASSERT_TRUE(write_run_json(FileSystem::real(), run_.path(), json).ok());
  }
  static void emit_steps(int count) {
    static EventName step("optimizer");
    for (int i = 0; i < count; ++i) {
      emit(step, EventKind::kBegin);
      emit(step, EventKind::kEnd);
    }
  }
  void drain_like_the_recorder() {
    auto trace = TraceWriter::open(FileSystem::real(), run_ / "trace");
    ASSERT_TRUE(trace.ok());
    Drain drain(ring_, **trace);
    EXPECT_GT(drain.take(0), 0U);
    ASSERT_TRUE((*trace)->flush().ok());
  }
  Json run_json() const { return *read_run_json(FileSystem::real(), run_.path()); }

  TempDir run_;
  std::shared_ptr<Ring> ring_;
};

TEST_F(RecoverTest, WhatTheRingStillHoldsIsAddedOnce) {
  emit_steps(5);
  drain_like_the_recorder();
  emit_steps(7);
  const auto changed = recover_run(run_.path());
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  EXPECT_TRUE(*changed);
  EXPECT_EQ(read_run(run_.path())->spans.size(), 12U) << "the five drained before are still in the ring";
  EXPECT_EQ(run_json()["outcome"]["kind"].as_string(), "lost");
  EXPECT_FALSE(std::filesystem::exists(ring_path()));

  EXPECT_FALSE(*recover_run(run_.path())) << "a second time there is nothing to do";
  EXPECT_EQ(read_run(run_.path())->spans.size(), 12U);
}

TEST_F(RecoverTest, ATraineeThatStillTrainsKeepsItsRing) {
  leave_run(::getpid());
  emit_steps(3);
  EXPECT_TRUE(*recover_run(run_.path()));
  EXPECT_EQ(run_json()["outcome"]["kind"].as_string(), "running");
  emit_steps(2);
  EXPECT_TRUE(*recover_run(run_.path()));
  EXPECT_EQ(read_run(run_.path())->spans.size(), 5U);
  EXPECT_TRUE(std::filesystem::exists(ring_path()));
}

TEST_F(RecoverTest, ARunThatIsBeingRecordedIsLeftAlone) {
  emit_steps(3);
  const auto held = RunLock::take(run_.path());
  ASSERT_TRUE(held.ok());
  EXPECT_FALSE(*recover_run(run_.path()));
  EXPECT_EQ(run_json()["outcome"]["kind"].as_string(), "running");
}

TEST_F(RecoverTest, ARingThatIsGoneLeavesTheTraceAsItIs) {
  emit_steps(4);
  drain_like_the_recorder();
  ::unlink(ring_path().c_str());
  EXPECT_TRUE(*recover_run(run_.path()));
  EXPECT_EQ(run_json()["outcome"]["kind"].as_string(), "lost");
  EXPECT_EQ(read_run(run_.path())->spans.size(), 4U);
}

// run.json may come from anywhere: a path in it that is no ring is not ours to delete.
TEST_F(RecoverTest, AFileThatIsNoRingIsNotRemoved) {
  run_.write("precious", std::string(10'000, 'x'));
  Json json = run_json();
  json.set("ring", (run_ / "precious").string());
  ASSERT_TRUE(write_run_json(FileSystem::real(), run_.path(), json).ok());
  EXPECT_TRUE(*recover_run(run_.path()));
  EXPECT_TRUE(std::filesystem::exists(run_ / "precious"));
}

// --- what is left out of a trace that grows too fast ---

TEST_F(RecoverTest, OtherThreadsAreLeftOutInWholeSpans) {
  auto trace = TraceWriter::open(FileSystem::real(), run_ / "trace");
  ASSERT_TRUE(trace.ok());
  Drain drain(ring_, **trace);
  static EventName decode("feed.decode");
  std::thread([&] {
    emit(decode, EventKind::kBegin);
    drain.take(0);
    drain.keep_other_threads(false);
    emit(decode, EventKind::kEnd);  // of a span that is in the trace: kept
    emit(decode, EventKind::kBegin);
    drain.take(0);
    drain.keep_other_threads(true);
    emit(decode, EventKind::kEnd);  // its begin is not there
    emit(decode, EventKind::kBegin);
    emit(decode, EventKind::kEnd);
    drain.take(0);
  }).join();
  ASSERT_TRUE((*trace)->flush().ok());
  EXPECT_EQ(drain.left_out(), 2U);
  const auto data = read_run(run_.path());
  ASSERT_EQ(data->spans.size(), 2U);
  EXPECT_FALSE(data->spans[0].open);
  EXPECT_FALSE(data->spans[1].open);
}

// --- how a run ended ---

Json outcome(int wait_status, Signal<std::uint64_t> kills_after = std::uint64_t{2}, std::optional<double> share = {}) {
  EndFacts facts;
  facts.wait_status = wait_status;
  facts.oom_kills_before = std::uint64_t{2};
  facts.oom_kills_after = std::move(kills_after);
  facts.memory_share = share;
  return outcome_json(facts);
}

TEST(Outcome, ExitCodesAndSignalsKeepTheirKind) {
  EXPECT_EQ(outcome(0)["kind"].as_string(), "finished");
  EXPECT_EQ(outcome(3 << 8)["kind"].as_string(), "exit");
  EXPECT_EQ(outcome(3 << 8)["code"].as_int(), 3);
  EXPECT_EQ(outcome(SIGSEGV)["kind"].as_string(), "signal");
  EXPECT_EQ(outcome(SIGSEGV)["signal"].as_int(), SIGSEGV);
  EXPECT_EQ(exit_code_of(SIGKILL), 137);
  EXPECT_EQ(exit_code_of(3 << 8), 3);
}

TEST(Outcome, AnOutOfMemoryKillIsToldFromAnotherByTheKernelsCounter) {
  EXPECT_TRUE(outcome(SIGKILL, std::uint64_t{3})["why"].as_string().starts_with("out of memory: the kernel"));
  EXPECT_TRUE(outcome(SIGKILL)["why"].as_string().starts_with("killed from outside: no out-of-memory kill"));
}

TEST(Outcome, WithoutTheCounterItIsInferredAndSaidSo) {
  const auto hidden = Signal<std::uint64_t>::unavailable("hidden");
  EXPECT_NE(outcome(SIGKILL, hidden, 0.97)["why"].as_string().find("inferred from memory at 97 %"), std::string::npos);
  EXPECT_NE(outcome(SIGKILL, hidden, 0.3)["why"].as_string().find("or for memory: hidden"), std::string::npos);
}

// --- what is sampled, from a recorded /proc and cgroup ---

class SamplerTest : public ::testing::Test {
 protected:
  void process(int pid, int parent, int ticks, int children_of_main = 0, int reaped = 0) {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    // 52 fields; 14 and 15 are user and system ticks, 16 those of reaped children, 22 the start, 24 the resident pages.
    std::string stat = std::to_string(pid) + " (py) thon) S " + std::to_string(parent);
    for (int field = 5; field <= 52; ++field) {
      const int value = field == 14 ? ticks : field == 16 ? reaped : field == 22 ? 77 : field == 24 ? 1000 : 0;
      stat += " " + std::to_string(value);
    }
    root_.write(folder + "stat", stat);
    root_.write(folder + "io", "rchar: 9\nread_bytes: " + std::to_string(ticks * 10) +
                                   "\nwrite_bytes: " + std::to_string(ticks) + "\n");
    root_.write(folder + "smaps_rollup", "Rss: 9 kB\nPss:                2048 kB\nPss_Dirty: 1 kB\n");
    root_.write(folder + "task/" + std::to_string(pid) + "/children",
                children_of_main == 0 ? "" : std::to_string(children_of_main) + " ");
  }
  void cgroup(int periods, int throttled) {
    root_.write("proc/self/cgroup", "0::/job\n");
    root_.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    root_.write("sys/fs/cgroup/job/cpu.stat", "usage_usec 5\nnr_periods " + std::to_string(periods) +
                                                  "\nnr_throttled " + std::to_string(throttled) + "\n");
  }
  std::map<std::string, double> sample(Sampler& sampler, std::chrono::milliseconds at) {
    std::map<std::string, double> out;
    for (const Reading& reading : sampler.sample(at)) out[reading.name] = reading.value;
    return out;
  }
  machine::Root root() const { return {root_.path()}; }

  TempDir root_;
};

TEST_F(SamplerTest, RatesComeFromTheWholeTreeOverTheTimeBetweenSamples) {
  const auto per_second = static_cast<int>(::sysconf(_SC_CLK_TCK));
  process(100, 1, 0, 101);
  process(101, 100, 0);
  Sampler sampler(root(), 100, std::nullopt, "no driver");
  auto first = sample(sampler, std::chrono::seconds(10));
  EXPECT_FALSE(first.contains("cpu.trainee")) << "one reading has no rate";
  EXPECT_EQ(first["memory.trainee"], 1000.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(first["memory.workers"], 2048.0 * 1024);

  process(100, 1, 2 * per_second, 101);
  process(101, 100, per_second);
  auto second = sample(sampler, std::chrono::seconds(12));
  EXPECT_DOUBLE_EQ(second["cpu.trainee"], 1.0);
  EXPECT_DOUBLE_EQ(second["cpu.workers"], 0.5);
  EXPECT_DOUBLE_EQ(second["disk.read"], 3 * per_second * 10 / 2.0);
  EXPECT_DOUBLE_EQ(second["disk.write"], 3 * per_second / 2.0);
  EXPECT_EQ(sampler.signals()["gpu"]["why"].as_string(), "no driver");
}

// A DataLoader starts its workers anew each epoch; epochs may be shorter than the time between two samples.
TEST_F(SamplerTest, AWorkerThatEndedBetweenSamplesKeepsItsTime) {
  const auto per_second = static_cast<int>(::sysconf(_SC_CLK_TCK));
  process(100, 1, 0, 101);
  process(101, 100, per_second);
  Sampler sampler(root(), 100, std::nullopt, "no driver");
  (void)sample(sampler, std::chrono::seconds(10));

  std::filesystem::remove_all(root_ / "proc/101");
  process(100, 1, 0, 0, 3 * per_second);  // it used two seconds more, and has been waited for
  EXPECT_DOUBLE_EQ(sample(sampler, std::chrono::seconds(11))["cpu.workers"], 2.0);
}

TEST_F(SamplerTest, ThrottlingIsTheShareOfPeriodsSinceTheLastSample) {
  process(100, 1, 0);
  cgroup(10, 5);
  Sampler sampler(root(), 100, std::nullopt, "");
  (void)sample(sampler, std::chrono::seconds(1));
  cgroup(20, 8);
  EXPECT_DOUBLE_EQ(sample(sampler, std::chrono::seconds(2))["cpu.throttled"], 0.3);
}

TEST_F(SamplerTest, WhatCannotBeReadIsLeftOutAndSaysWhy) {
  Sampler sampler(root(), 100, std::nullopt, "no driver");
  (void)sample(sampler, std::chrono::seconds(1));
  const auto readings = sample(sampler, std::chrono::seconds(2));
  EXPECT_FALSE(readings.contains("cpu.trainee"));
  EXPECT_FALSE(readings.contains("disk.read"));
  EXPECT_FALSE(readings.contains("cpu.throttled"));
  for (const char* signal : {"cpu", "disk", "cpu.throttled", "gpu"})
    EXPECT_NE(sampler.signals()[signal]["why"].as_string(), "") << signal;
}

// --- the whole of it, around a command that is no Python ---

class RecordTest : public ::testing::Test {
 protected:
  RecordOptions options() const {
    RecordOptions options;
    options.root = root_ / "runs";
    return options;
  }
  TempDir root_;
};

TEST_F(RecordTest, ExitCodeIsPassedOnAndTheFolderIsWhole) {
  const auto done = record({"sh", "-c", "exit 7"}, options());
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(done->exit_code, 7);
  EXPECT_EQ(done->json["outcome"]["code"].as_int(), 7);
  EXPECT_NE(done->json["python"]["why"].as_string().find("did not start a Python"), std::string::npos);
  const auto data = read_run(done->run);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->bad_bytes, 0U);
  EXPECT_FALSE(data->counters.empty());
  EXPECT_FALSE(std::filesystem::exists("/dev/shm/stoker-" + done->run.filename().string() + ".ring"));
  EXPECT_FALSE(*recover_run(done->run));
}

TEST_F(RecordTest, ACommandThatIsNotThereLeavesNothing) {
  EXPECT_EQ(record({"no-such-command"}, options()).code(), ErrorCode::kNotFound);
  EXPECT_TRUE(std::filesystem::is_empty(root_ / "runs"));
}

TEST_F(RecordTest, TheRingIsReservedBeforeAnybodyMapsIt) {
  const auto ring = create_ring(root_.path());
  ASSERT_TRUE(ring.ok());
  EXPECT_GE(std::filesystem::file_size(ring->path), 32U * (1U << 13) * sizeof(Event));
  struct ::stat info {};
  ASSERT_EQ(::stat(ring->path.c_str(), &info), 0);
  EXPECT_GE(info.st_blocks * 512, info.st_size);
  ::unlink(ring->path.c_str());
}

}  // namespace
}  // namespace stoker::watch
