// A trace's text is read whatever its windows and its damage; figures are those computed by hand. The comparison with
// the brute-force oracle on recorded traces is tests/python/test_trace.py.
#include "stoker/watch/kineto.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "support/piece_source.h"
#include "support/temp_dir.h"
#include "watch/kineto/analyse.h"
#include "watch/kineto/gpu_work.h"
#include "watch/kineto/reader.h"
#include "watch/kineto/scanner.h"

namespace stoker::watch {
namespace {

using kineto::parse_us;
using testing::PieceSource;
using testing::TempDir;

// One complete event; times in µs, as they shall stand in the text.
std::string event(const std::string& category, const std::string& name, const std::string& start,
                  const std::string& duration, const std::string& args = "") {
  return "{\"ph\": \"X\", \"cat\": \"" + category + "\", \"name\": \"" + name +
         "\", \"pid\": 1, \"tid\": 2, \"ts\": " + start + ", \"dur\": " + duration + ", \"args\": {" + args + "}}";
}
std::string kernel(const std::string& name, int start, int duration, int correlation, int stream = 7) {
  return event(
      "kernel", name, std::to_string(start), std::to_string(duration),
      "\"device\": 0, \"stream\": " + std::to_string(stream) + ", \"correlation\": " + std::to_string(correlation));
}
std::string launch(int start, int correlation, int duration = 2) {
  return event("cuda_runtime", "cudaLaunchKernel", std::to_string(start), std::to_string(duration),
               "\"correlation\": " + std::to_string(correlation));
}
std::string trace(const std::vector<std::string>& events, const std::string& before = "") {
  std::string text = "{" + before + "\"traceEvents\": [\n";
  for (std::size_t i = 0; i < events.size(); ++i) text += (i == 0 ? "" : ",\n") + events[i];
  return text + "\n]}";
}

KinetoRank analysed(const std::string& text, const KinetoOptions& options = {}) {
  PieceSource source(text);
  auto rank = kineto::analyse(source, "t.json", 0, options);
  EXPECT_TRUE(rank.ok()) << rank.error().message;
  return rank ? *rank : KinetoRank();
}

std::int64_t ns_of(std::string_view text) {
  std::int64_t ns = 0;
  EXPECT_TRUE(parse_us(text, ns)) << text;
  return ns;
}

TEST(KinetoScannerTest, MicrosecondsBecomeWholeNanoseconds) {
  EXPECT_EQ(ns_of("1682725898236567"), 1682725898236567000);
  EXPECT_EQ(ns_of("4203669603454.206"), 4203669603454206);
  EXPECT_EQ(ns_of("1712195495984501.2"), 1712195495984501200);
  EXPECT_EQ(ns_of("0.0005"), 1);
  EXPECT_EQ(ns_of("28.225999999999999"), 28226);
  EXPECT_EQ(ns_of("-3.5"), -3500);
  EXPECT_EQ(ns_of("1.5e3"), 1500000);
  std::int64_t ns = 0;
  for (const char* bad : {"", "-", "NaN", "nan", "Infinity", "null", "1e300", "99999999999999999999", "1.2.3", "12x"}) {
    EXPECT_FALSE(parse_us(bad, ns)) << bad;
  }
}

TEST(KinetoScannerTest, EscapesAreResolvedAndUnknownOnesKept) {
  EXPECT_EQ(kineto::unescape(R"(a\"b\\c\n\u00e9\ud83d\ude00\x\ud83d)"),
            "a\"b\\c\n\xc3\xa9\xf0\x9f\x98\x80\\x\xef\xbf\xbd");
}

TEST(KinetoReaderTest, EveryWindowGivesTheSameEvents) {
  const std::string text = trace({launch(0, 1), kernel("k{[\\\"]}", 5, 10, 1), event("cpu_op", "aten::add", "0", "4")},
                                 R"("deviceProperties": [{"id": 0, "name": "Tesla T4", "computeMajor": 7}],)");
  for (std::size_t piece = 1; piece < 90; ++piece) {
    PieceSource source(text, piece);
    const auto rank = kineto::analyse(source, "t.json", 0, {});
    ASSERT_TRUE(rank.ok());
    ASSERT_TRUE(rank->problems.empty()) << piece << ": " << rank->problems.front();
    ASSERT_EQ(rank->events_kept, 3U) << piece;
    ASSERT_TRUE(rank->gpu);
    EXPECT_EQ((*rank->gpu).kernels.front().name, "k{[\"]}");
    EXPECT_EQ(*rank->device, "Tesla T4");
    EXPECT_EQ(rank->text_bytes, text.size());
  }
}

// What is damaged is left out and named; the rest is read.
TEST(KinetoReaderTest, DamageIsNamedAndTheRestIsRead) {
  const std::string good = kernel("good", 100, 10, 1);
  struct Row {
    std::string damaged;
    std::string says;
  };
  const Row rows[] = {
      {event("kernel", "x", "NaN", "1", "\"stream\": 7"),
       "1 events have a time that is no number, or out of range; left out"},
      {event("kernel", "x", "1", "-1", "\"stream\": 7"), "1 events have a negative duration; left out"},
      {R"({"ph": "X", "cat": "kernel", "name": "x", "ts": 1, "args": {"stream": 7}})",
       "1 events have no duration; left out"},
      {R"({"ph": "X", "cat": "kernel", "name": "a"b", "ts": 1})",
       "1 stretches of its text are no JSON, at byte 18; read on behind them"},
      {event("cpu_op", "x", "1", "1", R"("Trace name": "say "hello, you" twice", "n": 1)"),
       "1 stretches of its text are no JSON, at byte 18; read on behind them"},
      {event("kernel", "x", "1", "1", R"("a": {"b": "one "two", "c": 3})"),
       "1 stretches of its text are no JSON, at byte 18; read on behind them"},
      {R"({"ph": "X", oops})", "1 stretches of its text are no JSON, at byte 18; read on behind them"},
  };
  for (const Row& row : rows) {
    const KinetoRank rank = analysed(trace({row.damaged, good}));
    ASSERT_EQ(rank.problems, std::vector{row.says}) << row.damaged;
    ASSERT_TRUE(rank.gpu) << row.damaged;
    EXPECT_EQ((*rank.gpu).kernels.size(), 1U);
    EXPECT_EQ((*rank.gpu).kernels.front().name, "good");
  }
}

TEST(KinetoReaderTest, CutTextIsReadUpToTheCut) {
  const std::string whole = trace({kernel("a", 0, 1, 1), kernel("b", 5, 1, 2)});
  const KinetoRank rank = analysed(whole.substr(0, whole.size() - 30));
  EXPECT_EQ(rank.events_kept, 1U);
  ASSERT_EQ(rank.problems.size(), 1U);
  EXPECT_EQ(rank.problems.front().substr(0, 24), "its JSON ends early at b");
}

TEST(KinetoReaderTest, ControlCharactersAndBareListsAreTaken) {
  EXPECT_EQ((*analysed(trace({kernel("a\x01\tb", 0, 1, 1)})).gpu).kernels.front().name, "a\x01\tb");
  EXPECT_EQ(analysed("[" + kernel("a", 0, 1, 1) + "]").events_kept, 1U);
}

TEST(KinetoReaderTest, MissingAndStrangePartsDoNotMatter) {
  const KinetoRank rank = analysed(trace({kernel("a", 0, 1, 1)}, R"("distributedInfo": {"rank": "x"},)"));
  EXPECT_EQ(rank.rank, 0);
  EXPECT_EQ(rank.device.why, "the trace has no deviceProperties");
  EXPECT_EQ((*rank.gpu).tensor_cores.why, "no device properties in the trace");
  EXPECT_EQ(analysed(trace({})).gpu.why, "no work on a GPU in the trace");
}

TEST(KinetoReaderTest, LimitsHoldAndAreSaid) {
  std::vector<std::string> events;
  for (int i = 0; i < 50; ++i) events.push_back(kernel("name-" + std::to_string(i), 10 * i, 1, i));
  KinetoOptions few;
  few.max_events = 20;
  EXPECT_EQ(analysed(trace(events), few).events_kept, 20U);
  EXPECT_EQ(analysed(trace(events), few).problems.size(), 1U);
  KinetoOptions names;
  names.max_name_bytes = 1000;
  EXPECT_LT((*analysed(trace(events), names).gpu).kernels.size(), 20U);
  EXPECT_EQ(analysed(trace(events), names).problems,
            std::vector<std::string>{"its names exceed the limit; later new ones are shown as one"});
  KinetoOptions text;
  text.max_text_bytes = 2000;
  EXPECT_EQ(analysed(trace(events), text).problems,
            std::vector<std::string>{"its text is longer than 2000 bytes; the rest is left out"});
  KinetoOptions value;
  value.max_value_bytes = 4096;
  const std::string large = "\"other\": \"" + std::string(20000, 'x') + "\",";
  PieceSource source(trace(events, large));
  EXPECT_EQ(kineto::analyse(source, "t.json", 0, value).code(), ErrorCode::kBadInput);
}

TEST(KinetoReaderTest, FortyBytesAnEvent) {
  std::vector<std::string> events;
  for (int i = 0; i < 20000; ++i) events.push_back(event("cpu_op", "aten::add", std::to_string(i), "1"));
  const KinetoRank rank = analysed(trace(events));
  EXPECT_EQ(rank.events_kept, 20000U);
  EXPECT_LE(static_cast<double>(rank.table_bytes) / 20000, 48);
}

// A 0–10. B is launched at 15, after A, and runs 20–30: host wait 10. C is launched at 25 and runs 40–50: kernel
// wait 10. D is launched at 45 and runs 100–110: it lay ready for over 30 µs, other 50. Not in the order of time.
TEST(KinetoFiguresTest, IdleTimeIsSplitByItsCause) {
  const KinetoRank rank = analysed(trace({kernel("D", 100, 10, 4), launch(25, 3), kernel("A", 0, 10, 1), launch(45, 4),
                                          kernel("B", 20, 10, 2), launch(15, 2), kernel("C", 40, 10, 3)}));
  const GpuUse& gpu = *rank.gpu;
  EXPECT_EQ(gpu.span_ns, 110'000);
  EXPECT_EQ(gpu.idle_ns, 70'000);
  ASSERT_EQ(gpu.streams.size(), 1U);
  EXPECT_EQ(gpu.streams[0].idle.host_wait_ns, 10'000);
  EXPECT_EQ(gpu.streams[0].idle.kernel_wait_ns, 10'000);
  EXPECT_EQ(gpu.streams[0].idle.other_ns, 50'000);
  EXPECT_EQ(gpu.idle.host_wait_ns, 10'000);
  EXPECT_EQ(gpu.launches.matched, 3U);
  EXPECT_EQ(gpu.launches.unmatched, 1U);
}

// Compute 0–40, communication 30–60 on another stream: 10 hidden, 20 exposed, overlap a third.
TEST(KinetoFiguresTest, CommunicationIsHiddenOnlyBehindCompute) {
  const GpuUse gpu = *analysed(trace({kernel("gemm", 0, 40, 1), kernel("ncclKernel_AllReduce", 30, 30, 2, 14),
                                      event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "50", "20",
                                            "\"device\": 0, \"stream\": 7, \"correlation\": 3")}))
                          .gpu;
  EXPECT_EQ(gpu.communication_ns, 30'000);
  EXPECT_EQ(gpu.exposed_communication_ns, 20'000);
  EXPECT_DOUBLE_EQ(*gpu.communication_overlap_pct, 100.0 / 3);
  const std::map<std::string, std::int64_t> expected = {{"compute", 30'000},
                                                        {"compute+communication", 10'000},
                                                        {"communication", 10'000},
                                                        {"communication+memory", 10'000},
                                                        {"memory", 10'000}};
  EXPECT_EQ(gpu.combination_ns, expected);
  EXPECT_EQ(gpu.pageable_copy_ns, 20'000);
}

// The last of two steps is left out: what it launched, and what nobody launched.
TEST(KinetoFiguresTest, LastOfSeveralStepsIsLeftOut) {
  const KinetoRank rank = analysed(trace({event("user_annotation", "ProfilerStep#1", "0", "50"), launch(1, 1),
                                          kernel("a", 5, 10, 1), event("user_annotation", "ProfilerStep#2", "50", "50"),
                                          launch(51, 2), kernel("b", 60, 10, 2), kernel("unlaunched", 20, 10, 9)}));
  ASSERT_EQ((*rank.gpu).kernels.size(), 1U);
  EXPECT_EQ((*rank.gpu).kernels.front().name, "a");
  EXPECT_EQ(rank.window.work_left_out, 2U);
  ASSERT_EQ(rank.steps.size(), 2U);
  EXPECT_EQ(rank.steps[0].launched, 1U);
  EXPECT_EQ(rank.steps[0].gpu_busy_ns, 10'000);
  EXPECT_FALSE(rank.steps[1].in_window);
}

// outer 0–100 holds inner 20–50; late 90–120 begins in outer and ends after it. Own: 20 + 40, 30, 30.
TEST(KinetoFiguresTest, OwnTimesAddUpEvenWithoutNesting) {
  const KinetoRank rank = analysed(trace({event("cpu_op", "inner", "20", "30"), event("cpu_op", "outer", "0", "100"),
                                          event("cpu_op", "late", "90", "30")}));
  ASSERT_EQ(rank.ops.size(), 3U);
  EXPECT_EQ(rank.ops[0].name, "outer");
  EXPECT_EQ(rank.ops[0].self_ns, 60'000);
  EXPECT_EQ(rank.ops[1].self_ns, 30'000);
  EXPECT_EQ(rank.ops[2].self_ns, 30'000);
}

TEST(KinetoFiguresTest, TensorCoresAreKnownByTheKernelsNames) {
  for (const char* yes :
       {"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn",
        "ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_nn",
        "void cutlass::Kernel<cutlass_80_tensorop_f16_s16816gemm_relu_f16_64x64>"}) {
    EXPECT_TRUE(kineto::uses_tensor_cores(yes)) << yes;
  }
  for (const char* no : {"volta_sgemm_128x64_nn", "ampere_sgemm_32x128_tn", "vectorized_elementwise_kernel"}) {
    EXPECT_FALSE(kineto::uses_tensor_cores(no)) << no;
  }
  EXPECT_TRUE(kineto::is_matrix_kernel("volta_sgemm_128x64_nn"));
  EXPECT_FALSE(kineto::is_matrix_kernel("void at::native::im2col_kernel<float>"));
}

// Four steps of 100 µs; in each the kernel runs `busy` µs, launched at `at` into the step.
KinetoRank steps_with(int at, int busy, const std::string& host) {
  std::vector<std::string> events;
  for (int i = 0; i < 5; ++i) {
    const int start = 1000 * i;
    events.push_back(event("user_annotation", "ProfilerStep#" + std::to_string(i), std::to_string(start), "1000"));
    if (!host.empty()) events.push_back(event("cpu_op", host, std::to_string(start), std::to_string(at + 2)));
    events.push_back(launch(start + at, i + 1));
    events.push_back(kernel("elementwise", start + at + 5, busy, i + 1));
  }
  return analysed(trace(events));
}

TEST(KinetoVerdictTest, CauseIsNamed) {
  const auto cause = [](const KinetoRank& rank) { return judge_kineto({rank}).front().cause; };
  EXPECT_EQ(cause(steps_with(500, 400, "aten::linear")), "launch-bound");
  EXPECT_EQ(cause(steps_with(500, 400, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")), "data-bound");
  EXPECT_EQ(cause(steps_with(500, 400, "")), "host-bound");
  EXPECT_EQ(cause(steps_with(5, 990, "")), "nothing-to-fix");
  EXPECT_EQ(cause(analysed(trace({}))), "not-enough-evidence");
  EXPECT_EQ(cause(analysed(trace({kernel("a", 0, 1, 1)}))), "not-enough-evidence");
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string in = text;
  std::string out(deflateBound(&stream, in.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

std::string long_trace() {
  std::vector<std::string> events;
  for (int i = 0; i < 20000; ++i) events.push_back(kernel("k" + std::to_string(i % 97), 10 * i, 5, i));
  return trace(events);
}

class KinetoFileTest : public ::testing::Test {
 protected:
  Result<KinetoRank> read(const std::string& bytes, const KinetoOptions& options = {}) {
    return read_kineto(FileSystem::real(), dir_.write("t.json.gz", bytes), 0, options);
  }
  TempDir dir_;
};

TEST_F(KinetoFileTest, GzipInOneOrSeveralMembersReadsAsTheText) {
  const std::string text = long_trace();
  const auto plain = read(text);
  const auto one = read(gzip(text));
  const auto two = read(gzip(text.substr(0, 777'777)) + gzip(text.substr(777'777)) + std::string(100, '\0'));
  ASSERT_TRUE(plain.ok() && one.ok() && two.ok());
  EXPECT_TRUE(two->problems.empty());
  EXPECT_EQ(plain->events_kept, 20000U);
  EXPECT_EQ(to_json({*plain}, {}), to_json({*one}, {}));
  EXPECT_EQ(to_json({*plain}, {}), to_json({*two}, {}));
}

TEST_F(KinetoFileTest, CutOrDamagedGzipIsReadUpToThere) {
  const std::string whole = gzip(long_trace());
  const auto cut = read(whole.substr(0, whole.size() / 2));
  ASSERT_TRUE(cut.ok()) << cut.error().message;
  EXPECT_GT(cut->events_kept, 1000U);
  ASSERT_EQ(cut->problems.size(), 2U);
  EXPECT_EQ(cut->problems[1], "its gzip data ends early, at byte " + std::to_string(whole.size() / 2));

  std::string damaged = whole;
  damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 0x55);
  damaged[whole.size() / 2 + 1] = static_cast<char>(damaged[whole.size() / 2 + 1] ^ 0x55);
  const auto read_damaged = read(damaged);
  ASSERT_TRUE(read_damaged.ok());
  EXPECT_FALSE(read_damaged->problems.empty());

  const auto head_only = read(whole.substr(0, 12));
  ASSERT_EQ(head_only.code(), ErrorCode::kBadInput);
  EXPECT_NE(head_only.error().message.find("its gzip data ends early, at byte 12"), std::string::npos);
}

TEST_F(KinetoFileTest, WhatIsNoTraceIsRefused) {
  for (const char* text :
       {"", "hello", "{}", "[1", "\"traceEvents\"", "{\"traceEvents\": 7}", "PK\x03\x04zip", "\x1f\x8b"}) {
    const auto result = read(text);
    if (std::string_view(text) == "[1") {  // a list of events, cut before the first
      EXPECT_TRUE(result.ok());
      continue;
    }
    ASSERT_EQ(result.code(), ErrorCode::kBadInput) << text;
    EXPECT_NE(result.error().message.find("t.json.gz"), std::string::npos);
    EXPECT_FALSE(result.error().hint.empty());
  }
  EXPECT_EQ(read_kineto(FileSystem::real(), dir_ / "absent", 0).code(), ErrorCode::kNotFound);
  EXPECT_EQ(read_kineto(FileSystem::real(), dir_.path(), 0).code(), ErrorCode::kBadInput);
}

// The inflating thread is blocked on a full queue when nobody reads on.
TEST_F(KinetoFileTest, StopsWhileTheInflaterIsBlocked) {
  int asked = 0;
  KinetoOptions options;
  options.cancelled = [&] { return ++asked > 2; };
  EXPECT_EQ(read(gzip(long_trace()), options).code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace stoker::watch
