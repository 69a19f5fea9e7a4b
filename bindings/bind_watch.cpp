#include "convert.h"

namespace stoker::python {

void bind_watch(nb::module_& /*m*/) {}

}  // namespace stoker::python
