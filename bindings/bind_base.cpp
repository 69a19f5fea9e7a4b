#include "convert.h"

#include <cmath>

#include "stoker/base/events.h"
#include "stoker/base/files.h"
#include "stoker/base/hash.h"
#include "stoker/base/units.h"

namespace stoker::python {
namespace {

// Filled when the module is made; the classes live as long as it does.
struct Exceptions {
  nb::object base, corrupt, no_space, in_use, bad_input, io;
};
Exceptions* g_exceptions = nullptr;

nb::handle exception_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::kCorrupt:
      return g_exceptions->corrupt;
    case ErrorCode::kNoSpace:
      return g_exceptions->no_space;
    case ErrorCode::kInUse:
      return g_exceptions->in_use;
    case ErrorCode::kBadInput:
    case ErrorCode::kNotFound:
    case ErrorCode::kExists:
    case ErrorCode::kUnsupported:
      return g_exceptions->bad_input;
    case ErrorCode::kIo:
      return g_exceptions->io;
    default:
      return g_exceptions->base;
  }
}

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ErrorException& e) {
    const std::string text = e.error.hint.empty() ? e.error.message : e.error.message + "\nhint: " + e.error.hint;
    const nb::object value = exception_for(e.error.code)(text);
    value.attr("code") = name(e.error.code);
    value.attr("hint") = e.error.hint;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())), value.ptr());
  }
}

nb::object make_exception(nb::module_& m, const char* name, const char* doc, nb::handle parent) {
  const std::string qualified = std::string("stoker.") + name;
  nb::object made = nb::steal(PyErr_NewExceptionWithDoc(qualified.c_str(), doc, parent.ptr(), nullptr));
  m.attr(name) = made;
  return made;
}

void bind_errors(nb::module_& m) {
  auto* made = new Exceptions;
  made->base = make_exception(m, "Error", "Anything that Stoker refuses or fails at; ``code`` and ``hint`` say more.",
                              PyExc_Exception);
  made->base.attr("code") = "";
  made->base.attr("hint") = "";
  made->corrupt = make_exception(m, "CorruptError",
                                 "Stored bytes are damaged; the message names the file and the place.", made->base);
  made->no_space =
      make_exception(m, "NoSpaceError", "A disk or a quota is full; what was there before still is.", made->base);
  made->in_use = make_exception(m, "InUseError", "Another process or object holds it.", made->base);
  made->bad_input = make_exception(m, "BadInputError", "An argument or a file is not what the call takes.", made->base);
  made->io = make_exception(m, "IoError", "The system refused; the message has its words.", made->base);
  g_exceptions = made;
  nb::register_exception_translator(&translate);
}

}  // namespace

Json to_json(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow != 0)
      throw ErrorException{{ErrorCode::kBadInput, "an int of more than 64 bits cannot be stored as JSON"}};
    return static_cast<std::int64_t>(number);
  }
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::dict>(value)) {
    Json object = Json::object();
    for (auto [key, member] : nb::cast<nb::dict>(value))
      object.set(nb::cast<std::string>(nb::str(key)), to_json(member));
    return object;
  }
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    Json array = Json::array();
    for (nb::handle item : value) array.push(to_json(item));
    return array;
  }
  throw ErrorException{{ErrorCode::kBadInput, "a " + nb::cast<std::string>(nb::str(nb::type_name(value.type()))) +
                                                  " cannot be stored as JSON"}};
}

void bind_base(nb::module_& m) {
  bind_errors(m);
  m.def("parse_size", [](std::string_view text) { return unwrap(parse_size(text)); });
  m.def("parse_duration_s",
        [](std::string_view text) { return std::chrono::duration<double>(unwrap(parse_duration(text))).count(); });
  m.def("format_size", &format_size);
  m.def("format_duration", [](double seconds) {
    constexpr double kMost = 9e18;  // about 285 years; NaN is no less than it either
    const double ns = std::abs(seconds * 1e9) < kMost ? seconds * 1e9 : kMost;
    return format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(ns)));
  });
  m.def(
      "write_file_durably",
      [](const std::string& path, std::string_view text) {
        unwrap(write_file_durably(FileSystem::real(), path, text));
      },
      nb::call_guard<nb::gil_scoped_release>());
  m.def("hash_hex", [](const nb::bytes& bytes) {
    return hash128({static_cast<const std::byte*>(bytes.data()), bytes.size()}).hex();
  });

  m.def("events_attach", [](const std::string& path) { unwrap(events_attach(path)); });
  m.def("events_attach_from_environment", [] { unwrap(events_attach_from_environment()); });
  m.def("events_detach", &events_detach);
  m.def("events_on", &events_on);
  m.def("event_name", [](std::string_view name) { return event_name(name); });
  m.def("event_begin", [](std::uint32_t name) { emit(name, EventKind::kBegin); });
  m.def(
      "event_end", [](std::uint32_t name, double value) { emit(name, EventKind::kEnd, value); }, nb::arg("name"),
      nb::arg("value") = 0.0);
  m.def(
      "event_instant", [](std::uint32_t name, double value) { emit(name, EventKind::kInstant, value); },
      nb::arg("name"), nb::arg("value") = 0.0);
  m.def("event_counter", [](std::uint32_t name, double value) { emit(name, EventKind::kCounter, value); });
}

}  // namespace stoker::python
