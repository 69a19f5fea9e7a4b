#include "convert.h"
#include "event_call.h"

namespace stoker::python {

void bind_watch(nb::module_& m) { bind_event_calls(m); }

}  // namespace stoker::python
