// Maps exceptions of the library to those of poise/_errors.py.
#include <exception>

#include "face.hpp"

namespace poise::python {
namespace {

std::string_view name_remedy(Remedy::Kind kind) {
  switch (kind) {
    case Remedy::Kind::overwrite: return "overwrite";
    case Remedy::Kind::format: return "format";
    case Remedy::Kind::dtype: return "dtype";
    case Remedy::Kind::keep: return "keep";
    case Remedy::Kind::skip: return "skip";
    case Remedy::Kind::only: return "only";
    case Remedy::Kind::model_type: return "model_type";
    case Remedy::Kind::convert: return "convert";
    case Remedy::Kind::force: return "force";
    case Remedy::Kind::lora: return "lora";
  }
  return "";
}

void raise(const Error& error) {
  py::list remedies;
  for (const Remedy& remedy : error.remedies())
    remedies.append(
        py::make_tuple(make_text(name_remedy(remedy.kind)), make_text(remedy.value), make_text(remedy.tensor)));
  const py::object path = error.path().empty() ? py::object(py::none()) : py::object(make_text(error.path()));
  const py::object made = py::module_::import("poise._errors")
                              .attr("make_error")(make_text(to_string(error.kind())), make_text(error.message()), path,
                                                  make_optional_number(error.offset()), remedies);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const Error& error) {
    try {
      raise(error);
    } catch (py::error_already_set& failure) {
      failure.restore();
    }
  }
}

}  // namespace

void refuse(std::string message) { throw Error(ErrorKind::bad_argument, std::move(message)); }

void declare_errors(py::module_&) { py::register_local_exception_translator(&translate); }

}  // namespace poise::python
