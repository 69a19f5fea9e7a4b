#include "interrupt.h"

namespace stoker::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

}  // namespace

InterruptWatch::InterruptWatch() {
  interrupted = 0;
  struct ::sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  ::sigaction(SIGINT, &action, &old_int_);
  ::sigaction(SIGTERM, &action, &old_term_);
}

InterruptWatch::~InterruptWatch() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
}

bool InterruptWatch::asked() { return interrupted != 0; }

}  // namespace stoker::cli
