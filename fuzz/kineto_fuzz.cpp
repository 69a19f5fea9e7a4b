// Any bytes as a profiler's trace, plain or gzip, in pieces of any size: an answer comes, and it can be printed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "stoker/base/status.h"
#include "support/piece_source.h"
#include "watch/kineto/analyse.h"

namespace {

class MemoryFile final : public stoker::ReadableFile {
 public:
  explicit MemoryFile(std::string bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size_bytes() const override { return bytes_.size(); }
  stoker::Status read_at(std::uint64_t offset, std::span<std::byte> into) override {
    if (offset + into.size() > bytes_.size()) return stoker::Error{stoker::ErrorCode::kCorrupt, "the file ends"};
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return {};
  }

 private:
  const std::string bytes_;
};

void check(stoker::watch::kineto::ByteSource& source) {
  stoker::watch::KinetoOptions options;
  options.max_events = 5000;
  options.max_text_bytes = 1 << 22;
  options.max_value_bytes = 1 << 16;
  options.max_name_bytes = 1 << 16;
  auto rank = stoker::watch::kineto::analyse(source, "trace.json", 0, options);
  if (!rank) return;
  STOKER_CHECK(rank->events_kept <= options.max_events, "the limit holds");
  const std::vector ranks = {std::move(*rank)};
  const auto findings = stoker::watch::judge_kineto(ranks);
  STOKER_CHECK(!findings.empty(), "there is a verdict");
  STOKER_CHECK(!stoker::watch::kineto_summary(ranks.front()).empty(), "there is a summary");
  STOKER_CHECK(stoker::watch::kineto_page(ranks, findings).ends_with("</html>\n"), "there is a page");
  STOKER_CHECK(stoker::Json::parse(stoker::watch::to_json(ranks, findings).dump()).ok(), "the answer is JSON");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (auto source = stoker::watch::kineto::open_source(std::make_unique<MemoryFile>(text), "trace"); source.ok()) {
    check(**source);
  }
  stoker::testing::PieceSource pieces(std::move(text), std::size_t{1} + data[0]);
  check(pieces);
  return 0;
}
