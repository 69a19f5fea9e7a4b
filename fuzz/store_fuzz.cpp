// Bytes from outside that the store parses: a manifest (its hash made right, so that the parser behind it is reached)
// and a safetensors header.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "save/store/manifest.h"
#include "save/store/safetensors.h"
#include "stoker/base/hash.h"
#include "stoker/base/status.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)save::parse_header(text, size);
  (void)save::decode(text);
  std::string sealed = std::string(text) + ",\"hash\":\"";
  sealed += hash128(sealed).hex() + "\"}\n";
  const auto manifest = save::decode(sealed);
  if (!manifest) return 0;
  const auto again = save::encode(*manifest);
  STOKER_CHECK(again.ok() && save::decode(*again).ok(), "what was read can be written and read again");
  return 0;
}
