// Text, plain data and findings, from the library to Python and back.
#include <fmt/format.h>

#include "face.hpp"

namespace poise::python {
namespace {

constexpr int kDeepest = 64;  // as files are read

py::object taken(PyObject* made) {
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

Value value_from(py::handle object, int depth);

Attributes attributes_from(const py::dict& dict, int depth) {
  Attributes result;
  for (const auto& [key, item] : dict) {
    if (!py::isinstance<py::str>(key)) refuse(fmt::format("the key {} is no text", utf8(py::repr(key))));
    result.set(utf8(key), value_from(item, depth));
  }
  return result;
}

Value value_from(py::handle object, int depth) {
  if (depth > kDeepest) refuse(fmt::format("values are nested deeper than {}", kDeepest));
  if (object.is_none()) return nullptr;
  if (py::isinstance<py::bool_>(object)) return object.cast<bool>();
  if (py::isinstance<py::str>(object)) return utf8(object);
  if (py::isinstance<py::float_>(object)) return object.cast<double>();
  if (py::isinstance<py::int_>(object)) {
    try {
      if (py::cast<py::int_>(object) < py::int_(0)) return object.cast<std::int64_t>();
      return object.cast<std::uint64_t>();
    } catch (const py::cast_error&) {
      refuse(fmt::format("the integer {} does not fit 64 bits", utf8(py::str(object))));
    }
  }
  if (py::isinstance<py::bytes>(object)) {
    const auto bytes = object.cast<std::string_view>();
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    return Value::Bytes(first, first + bytes.size());
  }
  if (py::isinstance<py::dict>(object)) return attributes_from(py::reinterpret_borrow<py::dict>(object), depth + 1);
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    Value::Array items;
    for (const py::handle item : object) items.push_back(value_from(item, depth + 1));
    return items;
  }
  refuse(fmt::format("a value of type {}: files hold None, bool, int, float, str, bytes, lists and dicts",
                     utf8(py::type::of(object).attr("__name__"))));
}

struct Converter {
  py::object operator()(std::nullptr_t) const { return py::none(); }
  py::object operator()(bool value) const { return py::bool_(value); }
  py::object operator()(std::int64_t value) const { return py::int_(value); }
  py::object operator()(std::uint64_t value) const { return py::int_(value); }
  py::object operator()(double value) const { return py::float_(value); }
  py::object operator()(const std::string& value) const { return text(value); }
  py::object operator()(const Value::Bytes& value) const {
    return py::bytes(reinterpret_cast<const char*>(value.data()), value.size());
  }
  py::object operator()(const Value::Array& value) const {
    py::list result;
    for (const Value& item : value) result.append(to_python(item));
    return result;
  }
  py::object operator()(const Attributes& value) const { return to_python(value); }
  py::object operator()(const Value::Pairs& value) const {
    py::list result;
    for (const auto& [key, item] : value) result.append(py::make_tuple(to_python(key), to_python(item)));
    return result;
  }
};

}  // namespace

py::str text(std::string_view utf8) {
  return py::reinterpret_steal<py::str>(
      taken(PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "surrogateescape")).release());
}

std::string utf8(py::handle text) {
  if (!PyUnicode_Check(text.ptr()))
    throw py::type_error(fmt::format("str expected, not {}", Py_TYPE(text.ptr())->tp_name));
  const py::object bytes = taken(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  return std::string(bytes.cast<std::string_view>());
}

std::optional<std::string> name_from(py::handle object) {
  if (!PyUnicode_Check(object.ptr())) return std::nullopt;
  try {
    return utf8(object);
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_UnicodeEncodeError)) throw;
    return std::nullopt;
  }
}

std::filesystem::path path_from(py::handle object) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(object.ptr(), &bytes) == 0) throw py::error_already_set();
  return std::filesystem::path(py::reinterpret_steal<py::bytes>(bytes).cast<std::string>());
}

py::object to_python(const Value& value) { return std::visit(Converter(), value.storage()); }

py::dict to_python(const Attributes& attributes) {
  py::dict result;
  for (const auto& [key, value] : attributes) result[text(key)] = to_python(value);
  return result;
}

Attributes attributes_from(const py::dict& dict) { return attributes_from(dict, 0); }

py::object to_python(const Finding& finding) {
  return py::make_tuple(finding.severity == Severity::error ? "error" : "warning", text(finding.message),
                        text(finding.path), optional_number(finding.offset));
}

py::object optional_number(std::optional<std::uint64_t> number) {
  return number ? py::object(py::int_(*number)) : py::object(py::none());
}

DType dtype_from(std::string_view name) {
  const auto found = dtype_from_name(name);
  if (!found) refuse(fmt::format("\"{}\" is no element type", name));
  return *found;
}

}  // namespace poise::python
