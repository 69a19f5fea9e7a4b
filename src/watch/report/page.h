// The report's page as it was built. Private to the room.
#pragma once

#include <string_view>

namespace stoker::watch {

// The bytes of build/web/report.html; empty where none was built.
extern const std::string_view kReportPage;

}  // namespace stoker::watch
