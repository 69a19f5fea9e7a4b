#include "convert.h"

namespace stoker::python {

void bind_feed(nb::module_& /*m*/) {}

}  // namespace stoker::python
