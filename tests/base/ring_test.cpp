#include "base/ring.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "support/temp_dir.h"

namespace stoker {
namespace {

using testing::TempDir;

class RingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto ring = Ring::create(path(), {.names = 8, .slots = 2, .capacity = 16});
    ASSERT_TRUE(ring.ok());
    reader_ = std::make_unique<RingReader>(*ring);
    ASSERT_TRUE(events_attach(path()).ok());
  }
  void TearDown() override { events_detach(); }

  std::string path() const { return (dir_ / "ring").string(); }
  std::vector<Event> drain() {
    std::vector<Event> events;
    lost_ += reader_->drain([&](const Event& event) { events.push_back(event); });
    return events;
  }

  TempDir dir_;
  std::unique_ptr<RingReader> reader_;
  std::uint64_t lost_ = 0;
};

TEST_F(RingTest, EventsArriveInOrderWithTheirNames) {
  static EventName step("step");
  {
    const ScopedEvent span(step);
    emit(event_name("loss"), EventKind::kCounter, 0.5);
  }
  const auto events = drain();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(reader_->ring().name_text(events[0].name), "step");
  EXPECT_EQ(events[0].kind, EventKind::kBegin);
  EXPECT_EQ(reader_->ring().name_text(events[1].name), "loss");
  EXPECT_EQ(events[1].value, 0.5);
  EXPECT_EQ(events[2].kind, EventKind::kEnd);
  EXPECT_LE(events[0].time_ns, events[2].time_ns);
}

TEST_F(RingTest, ALateReaderGetsTheNewestAndCountsTheRest) {
  for (int i = 0; i < 100; ++i) emit(1, EventKind::kInstant, i);
  const auto events = drain();
  ASSERT_EQ(events.size(), 15U);
  EXPECT_EQ(events.back().value, 99);
  EXPECT_EQ(lost_, 85U);
}

TEST_F(RingTest, AnEndedThreadGivesItsSlotToTheNext) {
  for (int i = 0; i < 10; ++i) std::thread([] { emit(1, EventKind::kInstant); }).join();
  EXPECT_EQ(drain().size(), 10U);
  EXPECT_EQ(lost_, 0U);
}

TEST_F(RingTest, AFullNameTableGivesUnnamed) {
  for (int i = 0; i < 20; ++i) (void)event_name("name" + std::to_string(i));
  EXPECT_EQ(event_name("one more"), 0U);
  EXPECT_NE(event_name("name3"), 0U);
}

TEST_F(RingTest, AForkedChildIsSilent) {
  const pid_t child = ::fork();
  if (child == 0) {
    emit(1, EventKind::kInstant);
    ::_exit(events_on() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(drain().empty());
}

TEST_F(RingTest, AWriterAndAReaderAtOnceLoseNoEventUncounted) {
  constexpr int kEvents = 20'000;
  std::uint64_t seen = 0;
  {
    std::jthread writer([] {
      for (int i = 1; i <= kEvents; ++i) emit(1, EventKind::kCounter, i);
    });
    double last = 0;
    while (last < kEvents) {
      for (const Event& event : drain()) {
        EXPECT_GT(event.value, last);
        last = event.value;
        ++seen;
      }
    }
  }
  EXPECT_EQ(seen + lost_, static_cast<std::uint64_t>(kEvents));
}

TEST(Ring, RefusesWhatIsNoRing) {
  const TempDir dir;
  EXPECT_EQ(Ring::open((dir / "absent").string()).code(), ErrorCode::kNotFound);
  EXPECT_EQ(Ring::open(dir.write("short", "STKR").string()).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(Ring::open(dir.write("zeros", std::string(10'000, '\0')).string()).code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace stoker
