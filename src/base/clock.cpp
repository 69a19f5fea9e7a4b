#include "stoker/base/clock.h"

#include <ctime>

namespace stoker {
namespace {

Nanoseconds read_clock(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return std::chrono::seconds(now.tv_sec) + Nanoseconds(now.tv_nsec);
}

class RealClock final : public Clock {
 public:
  Nanoseconds monotonic() const override { return read_clock(CLOCK_MONOTONIC); }
  Nanoseconds wall() const override { return read_clock(CLOCK_REALTIME); }
};

std::string format_utc(Nanoseconds wall, const char* format) {
  const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(wall).count();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

}  // namespace

const Clock& Clock::real() {
  static const RealClock clock;
  return clock;
}

std::string utc_stamp(Nanoseconds wall) { return format_utc(wall, "%Y%m%dT%H%M%SZ"); }
std::string utc_iso(Nanoseconds wall) { return format_utc(wall, "%Y-%m-%dT%H:%M:%SZ"); }

}  // namespace stoker
