// The HTML page: a template that Vite built from web/ into one file, with a place for the report's JSON.
#include "watch/report/page.h"

#include "stoker/watch/report.h"

namespace stoker::watch {
namespace {

constexpr std::string_view kPlace = "\"__STOKER_REPORT__\"";

// Inside <script type="application/json"> only "</" and "<!--" could end or change what the parser reads.
std::string script_safe(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

Result<std::string> html_page(const Json& report) {
  const std::size_t at = kReportPage.find(kPlace);
  if (at == std::string_view::npos) {
    return Error{
        ErrorCode::kUnsupported, "this build of stoker has no report page in it",
        "run scripts/build-web (it needs Node.js 20.19 or newer) and build again; `stoker report --json` works"};
  }
  std::string out(kReportPage.substr(0, at));
  out += script_safe(report.dump());
  out += kReportPage.substr(at + kPlace.size());
  return out;
}

}  // namespace stoker::watch
