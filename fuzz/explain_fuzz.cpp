// Any bytes as an error log: an answer comes, in time, and it can be printed as JSON.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stoker/base/status.h"
#include "stoker/watch/explain.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view log(reinterpret_cast<const char*>(data), size);
  const auto result = stoker::watch::explain(log);
  STOKER_CHECK(stoker::Json::parse(stoker::watch::to_json(result, {}).dump()).ok(), "the answer is JSON");
  return 0;
}
