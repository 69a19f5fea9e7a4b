#include "convert.h"

NB_MODULE(_native, m) {
  m.doc() = "Stoker's C++ core; use the stoker package, not this module.";
  m.attr("__version__") = STOKER_VERSION;
  stoker::python::bind_base(m);
  stoker::python::bind_feed(m);
  stoker::python::bind_image(m);
  stoker::python::bind_save(m);
  stoker::python::bind_watch(m);
}
