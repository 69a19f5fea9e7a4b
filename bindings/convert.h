// How values and errors cross into Python. The one place where an Error becomes an exception.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "stoker/base/json.h"
#include "stoker/base/status.h"

namespace stoker::python {

namespace nb = nanobind;
using NoGil = nb::call_guard<nb::gil_scoped_release>;

// Thrown through nanobind's translator, which makes stoker.CorruptError and the others of it. Needs no GIL to throw.
struct ErrorException {
  Error error;
};

template <typename T>
T unwrap(Result<T> result) {
  if (!result) throw ErrorException{result.error()};
  return *std::move(result);
}

inline void unwrap(const Status& status) {
  if (!status) throw ErrorException{status.error()};
}

// Plain Python values (None, bool, int, float, str, list, dict) as Json. Ints beyond 64 bits: kBadInput.
Json to_json(nb::handle value);

void bind_base(nb::module_& m);
void bind_feed(nb::module_& m);
void bind_image(nb::module_& m);
void bind_save(nb::module_& m);
void bind_watch(nb::module_& m);

}  // namespace stoker::python
