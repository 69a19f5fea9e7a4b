// Written against CPython's own API: nanobind's call of a bound function costs as much as the event that it writes.
#include "event_call.h"

#include <structmember.h>

#include "stoker/base/events.h"

namespace stoker::python {
namespace {

// --- _EventCall(kind, name)(value=0.0): writes one event; no Python frame, nothing allocated ---

struct EventCall {
  PyObject_HEAD vectorcallfunc call;
  std::uint32_t name;
  EventKind kind;
};

PyObject* event_call(PyObject* self, PyObject* const* args, std::size_t count, PyObject* /*keywords*/) {
  const auto* site = reinterpret_cast<const EventCall*>(self);
  double value = 0;
  if (PyVectorcall_NARGS(count) > 0) {
    value = PyFloat_AsDouble(args[0]);
    if (value == -1.0 && PyErr_Occurred() != nullptr) return nullptr;
  }
  emit(site->name, site->kind, value);
  Py_RETURN_NONE;
}

PyObject* event_call_new(PyTypeObject* type, PyObject* args, PyObject* /*keywords*/) {
  unsigned kind = 0;
  unsigned name = 0;
  if (PyArg_ParseTuple(args, "II", &kind, &name) == 0) return nullptr;
  if (kind < 1 || kind > 4) return PyErr_Format(PyExc_ValueError, "event kind %u is not one of 1 to 4", kind);
  PyObject* made = PyType_GenericAlloc(type, 0);
  if (made == nullptr) return nullptr;
  auto* site = reinterpret_cast<EventCall*>(made);
  site->call = &event_call;
  site->name = name;
  site->kind = static_cast<EventKind>(kind);
  return made;
}

void event_call_free(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyMemberDef event_call_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(EventCall, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot event_call_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&event_call_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&event_call_free)},
    {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
    {Py_tp_members, event_call_members},
    {0, nullptr},
};

PyType_Spec event_call_spec = {"stoker._native._EventCall", sizeof(EventCall), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, event_call_slots};

// --- batch_samples(batch): the first dimension of the first array in a batch, or 0 ---

struct Names {
  PyObject* shape = PyUnicode_InternFromString("shape");
  PyObject* begin = PyUnicode_InternFromString("begin");
  PyObject* end = PyUnicode_InternFromString("end");
  PyObject* instant = PyUnicode_InternFromString("instant");
  PyObject* method_type = nb::object(nb::module_::import_("types").attr("MethodType")).release().ptr();
};

const Names& names() {
  static const Names made;
  return made;
}

// The first dimension of `shape`, which is given up; 0 for a scalar's.
double first_dimension(PyObject* shape) {
  double samples = 0;
  if (PySequence_Check(shape) != 0 && PySequence_Size(shape) > 0) {
    if (PyObject* first = PySequence_GetItem(shape, 0)) {
      samples = PyFloat_AsDouble(first);
      Py_DECREF(first);
    }
  }
  Py_DECREF(shape);
  if (PyErr_Occurred() == nullptr) return samples;
  PyErr_Clear();
  return 0;
}

double samples_in(PyObject* batch) {
  Py_INCREF(batch);
  for (int depth = 0; depth < 4; ++depth) {
    PyObject* inner = nullptr;
    if (PyList_Check(batch) || PyTuple_Check(batch)) {
      // A named tuple with a field `shape` is still a tuple of arrays.
      if (PySequence_Size(batch) > 0) inner = PySequence_GetItem(batch, 0);
    } else if (PyDict_Check(batch)) {
      Py_ssize_t at = 0;
      PyObject* key = nullptr;
      if (PyDict_Next(batch, &at, &key, &inner) != 0) Py_INCREF(inner);
    } else {
      PyObject* shape = PyObject_GetAttr(batch, names().shape);
      Py_DECREF(batch);
      if (shape != nullptr) return first_dimension(shape);
      PyErr_Clear();
      return 0;
    }
    Py_DECREF(batch);
    if (inner == nullptr) {
      PyErr_Clear();
      return 0;
    }
    batch = inner;
  }
  Py_DECREF(batch);
  return 0;
}

// --- _NextCall(take, wait, end): the method `__next__` of an iterator, with its wait reported to two sites ---

struct NextCall {
  PyObject_HEAD vectorcallfunc call;
  PyObject* take;  // the `__next__` that it stands for
  PyObject* wait;  // Site of the span; its figure is the samples in the batch
  PyObject* end;   // Site of the instant at the iterator's end
};

// Of CPython's calls only those of the stable ABI of 3.12.
void begin(PyObject* site) {
  if (PyObject* emit = PyObject_GetAttr(site, names().begin)) {
    PyObject* done = PyObject_CallNoArgs(emit);
    Py_XDECREF(done);
    Py_DECREF(emit);
  }
  PyErr_Clear();
}

// site.method(value). A recording that fails is not the script's problem.
void report(PyObject* site, PyObject* method, double value) {
  if (PyObject* emit = PyObject_GetAttr(site, method)) {
    PyObject* figure = PyFloat_FromDouble(value);
    PyObject* done = figure == nullptr ? nullptr : PyObject_Vectorcall(emit, &figure, 1, nullptr);
    Py_XDECREF(done);
    Py_XDECREF(figure);
    Py_DECREF(emit);
  }
  PyErr_Clear();
}

PyObject* next_call(PyObject* self, PyObject* const* args, std::size_t count, PyObject* keywords) {
  const auto* next = reinterpret_cast<const NextCall*>(self);
  begin(next->wait);
  PyObject* batch = PyObject_Vectorcall(next->take, args, count, keywords);
  if (batch != nullptr) {
    report(next->wait, names().end, samples_in(batch));
    return batch;
  }
  const bool exhausted = PyErr_ExceptionMatches(PyExc_StopIteration) != 0;
  const nb::error_scope raised;  // put back when it goes
  report(next->wait, names().end, 0);
  if (exhausted) report(next->end, names().instant, 0);
  return nullptr;
}

PyObject* next_bound_to(PyObject* self, PyObject* instance, PyObject* /*type*/) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyObject_CallFunctionObjArgs(names().method_type, self, instance, nullptr);
}

PyObject* next_call_new(PyTypeObject* type, PyObject* args, PyObject* /*keywords*/) {
  PyObject* take = nullptr;
  PyObject* wait = nullptr;
  PyObject* end = nullptr;
  if (PyArg_ParseTuple(args, "OOO", &take, &wait, &end) == 0) return nullptr;
  PyObject* made = PyType_GenericAlloc(type, 0);
  if (made == nullptr) return nullptr;
  auto* next = reinterpret_cast<NextCall*>(made);
  next->call = &next_call;
  next->take = Py_NewRef(take);
  next->wait = Py_NewRef(wait);
  next->end = Py_NewRef(end);
  return made;
}

int next_call_visit(PyObject* self, visitproc visit, void* arg) {
  const auto* next = reinterpret_cast<const NextCall*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(next->take);
  Py_VISIT(next->wait);
  Py_VISIT(next->end);
  return 0;
}

int next_call_clear(PyObject* self) {
  auto* next = reinterpret_cast<NextCall*>(self);
  Py_CLEAR(next->take);
  Py_CLEAR(next->wait);
  Py_CLEAR(next->end);
  return 0;
}

void next_call_free(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  next_call_clear(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

PyMemberDef next_call_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(NextCall, call), READONLY, nullptr},
    {"__wrapped__", T_OBJECT_EX, offsetof(NextCall, take), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot next_call_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&next_call_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&next_call_free)},
    {Py_tp_traverse, reinterpret_cast<void*>(&next_call_visit)},
    {Py_tp_clear, reinterpret_cast<void*>(&next_call_clear)},
    {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(&next_bound_to)},
    {Py_tp_members, next_call_members},
    {0, nullptr},
};

PyType_Spec next_call_spec = {
    "stoker._native._NextCall", sizeof(NextCall), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    next_call_slots};

PyObject* batch_samples(PyObject* /*module*/, PyObject* batch) { return PyFloat_FromDouble(samples_in(batch)); }

PyMethodDef batch_samples_def = {"batch_samples", &batch_samples, METH_O, nullptr};

}  // namespace

void bind_event_calls(nb::module_& m) {
  m.attr("_EventCall") = nb::steal(PyType_FromSpec(&event_call_spec));
  m.attr("_NextCall") = nb::steal(PyType_FromSpec(&next_call_spec));
  (void)names();  // made here, where an error is an import's
  m.attr("batch_samples") = nb::steal(PyCFunction_NewEx(&batch_samples_def, nullptr, nullptr));
}

}  // namespace stoker::python
