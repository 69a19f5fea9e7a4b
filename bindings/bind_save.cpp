#include "convert.h"

namespace stoker::python {

void bind_save(nb::module_& /*m*/) {}

}  // namespace stoker::python
