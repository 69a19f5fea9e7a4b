#include <gtest/gtest.h>

#include "stoker/base/hash.h"
#include "stoker/base/run_directory.h"
#include "stoker/watch/run_data.h"
#include "support/temp_dir.h"
#include "watch/trace/format.h"
#include "watch/trace/trace_reader.h"
#include "watch/trace/trace_writer.h"

namespace stoker::watch {
namespace {

using testing::TempDir;

class TraceTest : public ::testing::Test {
 protected:
  std::filesystem::path folder() const { return run_ / "trace"; }

  std::unique_ptr<TraceWriter> open(TraceOptions options = {}) {
    auto writer = TraceWriter::open(FileSystem::real(), folder(), Clock::real(), options);
    STOKER_CHECK(writer.ok(), "the folder is writable");
    return *std::move(writer);
  }

  // One training step of 10 µs that begins at `at`, as the hooks report it.
  static void step(TraceWriter& writer, std::uint32_t thread, std::uint64_t at) {
    for (const char* name : {"forward", "backward"}) {
      writer.event(thread, writer.name(name), EventKind::kBegin, at, 0);
      writer.event(thread, writer.name(name), EventKind::kEnd, at + 5000, 0);
      at += 5000;
    }
  }

  RunData read() {
    STOKER_CHECK(write_run_json(FileSystem::real(), run_.path(), Json::object({{"trainee_pid", 100}})).ok(), "");
    auto data = read_run(run_.path());
    STOKER_CHECK(data.ok(), data.error().message);
    return *std::move(data);
  }

  TempDir run_;
  const ThreadInfo main_{100, 100, "python", false};
};

TEST_F(TraceTest, WhatIsWrittenIsReadBack) {
  auto writer = open();
  const auto thread = writer->thread(main_);
  const auto loader = writer->thread({100, 101, "stoker-load-0", false});
  writer->event(thread, writer->name("data.wait"), EventKind::kBegin, 1000, 0);
  writer->event(thread, writer->name("gc"), EventKind::kInstant, 1500, 2);
  writer->event(thread, writer->name("data.wait"), EventKind::kEnd, 2000, 64);
  writer->event(loader, writer->name("feed.decode"), EventKind::kBegin, 1200, 0);
  writer->sample(writer->counter("memory.used", "bytes"), 1800, 5e9);
  writer->lost(7, 1900);
  ASSERT_TRUE(writer->flush().ok());

  const RunData data = read();
  ASSERT_EQ(data.spans.size(), 2U);
  EXPECT_EQ(data.names[data.spans[0].name], "data.wait");
  EXPECT_EQ(data.spans[0].begin_ns, 1000U);
  EXPECT_EQ(data.spans[0].end_ns, 2000U);
  EXPECT_EQ(data.spans[0].value, 64);
  EXPECT_FALSE(data.spans[0].open);
  EXPECT_TRUE(data.threads[data.spans[0].thread].main);
  EXPECT_TRUE(data.spans[1].open) << "its end is not in the trace";
  EXPECT_EQ(data.spans[1].end_ns, 2000U);
  EXPECT_EQ(data.threads[data.spans[1].thread].name, "stoker-load-0");
  EXPECT_FALSE(data.threads[data.spans[1].thread].main);
  ASSERT_EQ(data.instants.size(), 1U);
  EXPECT_EQ(data.instants[0].value, 2);
  ASSERT_EQ(data.counters.size(), 1U);
  EXPECT_EQ(data.counters[0].name, "memory.used");
  EXPECT_EQ(data.counters[0].unit, "bytes");
  ASSERT_EQ(data.counters[0].samples.size(), 1U);
  EXPECT_EQ(data.counters[0].samples[0].value, 5e9);
  EXPECT_EQ(data.lost_events, 7U);
  EXPECT_EQ(data.bad_bytes, 0U);
  EXPECT_EQ(data.first_ns, 1000U);
  EXPECT_EQ(data.last_ns, 2000U);
}

TEST_F(TraceTest, ACutAtEveryByteLeavesTheWholeFramesBeforeIt) {
  auto writer = open();
  const auto thread = writer->thread(main_);
  std::vector<std::uint64_t> ends = {0};
  for (std::uint64_t i = 0; i < 3; ++i) {
    step(*writer, thread, 1'000'000 * (i + 1));
    ASSERT_TRUE(writer->flush().ok());
    ends.push_back(writer->bytes_written());
  }
  const auto path = folder() / "trace-00000.pftrace";
  const std::string whole = testing::read_file(path);
  ASSERT_EQ(whole.size(), ends.back());
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    std::size_t frames = 0;
    while (frames + 1 < ends.size() && ends[frames + 1] <= cut) ++frames;
    TraceReader reader;
    reader.add_segment(std::string_view(whole).substr(0, cut));
    const RunData data = reader.finish({});
    ASSERT_EQ(data.spans.size(), 2 * frames) << "cut at " << cut;
    ASSERT_EQ(data.bad_bytes, cut - ends[frames]) << "cut at " << cut;
  }
}

TEST_F(TraceTest, AFlippedBitEndsTheSegmentBeforeItsFrame) {
  auto writer = open();
  const auto thread = writer->thread(main_);
  step(*writer, thread, 1'000'000);
  ASSERT_TRUE(writer->flush().ok());
  const std::size_t first = writer->bytes_written();
  step(*writer, thread, 2'000'000);
  ASSERT_TRUE(writer->flush().ok());
  const std::string whole = testing::read_file(folder() / "trace-00000.pftrace");
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    ASSERT_EQ(valid_prefix(bytes), bit / 8 < first ? 0 : first) << "bit " << bit;
  }
}

TEST_F(TraceTest, SegmentsRotateAndReadAsOneRun) {
  auto writer = open({.segment_bytes = 500});
  const auto thread = writer->thread(main_);
  for (std::uint64_t i = 1; i <= 50; ++i) {
    step(*writer, thread, 1'000'000 * i);
    ASSERT_TRUE(writer->flush().ok());
  }
  EXPECT_GT(FileSystem::real().list(folder())->size(), 5U);
  const RunData data = read();
  EXPECT_EQ(data.spans.size(), 100U);
  EXPECT_EQ(data.names.size(), 2U);
  EXPECT_EQ(data.threads.size(), 1U);
  EXPECT_EQ(data.bad_bytes, 0U);
}

TEST_F(TraceTest, ASecondWriterLeavesAHalfWrittenFrameAlone) {
  auto first = open();
  step(*first, first->thread(main_), 1'000'000);
  ASSERT_TRUE(first->flush().ok());
  first.reset();
  const auto path = folder() / "trace-00000.pftrace";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + 9);

  auto second = open();
  step(*second, second->thread(main_), 2'000'000);
  ASSERT_TRUE(second->flush().ok());
  const RunData data = read();
  EXPECT_EQ(data.spans.size(), 4U);
  EXPECT_EQ(data.bad_bytes, 9U);
}

TEST_F(TraceTest, ASpanWhoseEndWasLostEndsWithTheOneAroundIt) {
  auto writer = open();
  const auto thread = writer->thread(main_);
  writer->event(thread, writer->name("optimizer"), EventKind::kBegin, 1000, 0);
  writer->event(thread, writer->name("gc"), EventKind::kBegin, 1100, 0);
  writer->event(thread, writer->name("optimizer"), EventKind::kEnd, 2000, 0);
  writer->event(thread, writer->name("forward"), EventKind::kEnd, 3000, 0);  // its begin was lost: passed over
  ASSERT_TRUE(writer->flush().ok());
  const RunData data = read();
  ASSERT_EQ(data.spans.size(), 2U);
  EXPECT_FALSE(data.spans[0].open);
  EXPECT_TRUE(data.spans[1].open);
  EXPECT_EQ(data.spans[1].end_ns, 2000U);
}

// A frame that vouches for nonsense (hostile, so the checksum is right) must not be believed beyond its own bytes.
TEST(TraceReader, NonsenseInAValidFrameIsPassedOver) {
  std::string frame = "\x0a\x05\x5a\xff\xff\xff\x7f";  // a track event of 268 million bytes in a packet of five
  const std::uint32_t crc = crc32(std::as_bytes(std::span(frame)));
  frame += "\xc2\x3e\x08";
  frame.push_back(7);
  frame.append(3, '\0');
  for (unsigned shift = 0; shift < 32; shift += 8) frame += static_cast<char>(crc >> shift);
  TraceReader reader;
  reader.add_segment(frame);
  const RunData data = reader.finish({});
  EXPECT_EQ(data.bad_bytes, 0U);
  EXPECT_TRUE(data.spans.empty());
}

TEST(ReadRun, ARunWithoutATraceIsEmptyAndOneWithoutARunJsonIsNotFound) {
  const TempDir run;
  EXPECT_EQ(read_run(run.path()).code(), ErrorCode::kNotFound);
  run.write("run.json", "{\"run_id\": 1");
  EXPECT_EQ(read_run(run.path()).code(), ErrorCode::kCorrupt);
  run.write("run.json", "{}");
  const auto data = read_run(run.path());
  ASSERT_TRUE(data.ok());
  EXPECT_TRUE(data->spans.empty());
}

}  // namespace
}  // namespace stoker::watch
