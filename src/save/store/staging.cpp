#include "save/store/staging.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "stoker/base/units.h"

namespace stoker::save {
namespace {

constexpr std::size_t kCopyPiece = std::size_t{2} << 20;

// Around the cache: an ordinary store first reads the line that it is about to overwrite, a third of the traffic, and
// drives from the cache what the training has there.
#ifdef __SSE2__
void copy_past_cache(std::byte* to, const std::byte* from, std::size_t size) {
  constexpr std::size_t kLine = 64;
  const std::size_t head = std::min(size, (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + kLine <= size; at += kLine) {
    const auto* in = reinterpret_cast<const __m128i*>(from + at);
    auto* out = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  std::memcpy(to + at, from + at, size - at);
  _mm_sfence();
}
#else
void copy_past_cache(std::byte* to, const std::byte* from, std::size_t size) { std::memcpy(to, from, size); }
#endif

}  // namespace

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) {
    try {
      helpers.emplace_back(run);
    } catch (const std::system_error&) {
      break;  // no more threads to be had; those there are do it all
    }
  }
  run();
}

void copy_all(std::span<const Copy> copies, int threads) {
  std::vector<Copy> pieces;
  std::size_t total = 0;
  for (const Copy& copy : copies) {
    for (std::size_t at = 0; at < copy.size; at += kCopyPiece)
      pieces.push_back({copy.to + at, copy.from + at, std::min(kCopyPiece, copy.size - at)});
    total += copy.size;
  }
  // A thread costs about as much as copying half a megabyte.
  const auto worth = static_cast<int>(std::min<std::size_t>(threads, 1 + total / kCopyPiece));
  parallel_for(pieces.size(), worth,
               [&](std::size_t i) { copy_past_cache(pieces[i].to, pieces[i].from, pieces[i].size); });
}

StagingBuffer::~StagingBuffer() { release(); }

void StagingBuffer::release() {
  if (data_ != nullptr) ::munmap(data_, capacity_);
  data_ = nullptr;
  capacity_ = 0;
}

Status StagingBuffer::reserve(std::size_t size, int threads) {
  if (size <= capacity_) return {};
  release();
  const std::size_t rounded = (size + kCopyPiece - 1) / kCopyPiece * kCopyPiece;
  void* mapped = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return Error{ErrorCode::kNoSpace, fmt::format("no memory for {} of staging", format_size(rounded)),
                 "a save needs room for one copy of the state"};
  }
  (void)::madvise(mapped, rounded, MADV_HUGEPAGE);  // best effort
  (void)::madvise(mapped, rounded, MADV_DONTFORK);  // a forked worker has no use for it
  data_ = static_cast<std::byte*>(mapped);
  capacity_ = rounded;
  constexpr std::size_t kPage = 4096;
  parallel_for(rounded / kCopyPiece, threads, [this](std::size_t i) {
    for (std::size_t at = i * kCopyPiece; at < (i + 1) * kCopyPiece; at += kPage) data_[at] = std::byte{0};
  });
  return {};
}

}  // namespace stoker::save
