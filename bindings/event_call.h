// Callables for Python that write events without a Python frame: a site's begin, end, instant or counter, and the
// `__next__` of a hooked iterator.
#pragma once

#include "convert.h"

namespace stoker::python {

// Adds `_EventCall`, `_NextCall` and `batch_samples` to the module.
void bind_event_calls(nb::module_& m);

}  // namespace stoker::python
