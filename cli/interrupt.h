// Ctrl-C and SIGTERM as a question that long work asks itself between two pieces, so that nothing is left half.
#pragma once

#include <csignal>

namespace stoker::cli {

// Threads: one at a time. Lifetime: puts the earlier handlers back.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  static bool asked();

 private:
  struct ::sigaction old_int_ {};
  struct ::sigaction old_term_ {};
};

}  // namespace stoker::cli
