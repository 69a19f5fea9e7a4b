#include "stoker/base/threads.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace stoker {

void set_thread_name(const std::string& name) { pthread_setname_np(pthread_self(), name.substr(0, 15).c_str()); }

void lower_thread_priority(int steps) {
  const auto thread = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + steps);
}

}  // namespace stoker
