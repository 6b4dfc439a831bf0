// Converts text, plain data and findings between the library and Python.
#include <algorithm>

#include <fmt/ranges.h>

#include "face.hpp"
#include "model/card.hpp"
#include "numeric/float_formats.hpp"

namespace poise::python {
namespace {

constexpr int kDeepest = 64;  // as in the readers of JSON and CBOR

py::object require_result(PyObject* made) {
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

// Converts a value. `name` is the path of keys to the value ("a.b"), for errors.
Value parse_value(py::handle object, const std::string& name, int depth);

Attributes parse_attributes(const py::dict& dict, const std::string& name, int depth) {
  Attributes result;
  for (const auto& [key, item] : dict) {
    if (!py::isinstance<py::str>(key)) refuse(fmt::format("the key {} is not text", make_short_repr(key)));
    const std::string text = encode_utf8(key);
    result.set(text, parse_value(item, name.empty() ? text : fmt::format("{}.{}", name, text), depth));
  }
  return result;
}

// Returns true for numpy's float16 and float32 scalars, which are not instances of Python's float.
bool is_short_float(py::handle object) {
  const std::string_view type = Py_TYPE(object.ptr())->tp_name;
  return type == "numpy.float16" || type == "numpy.float32";
}

Value parse_value(py::handle object, const std::string& name, int depth) {
  if (depth > kDeepest) refuse(fmt::format("{}: values are nested deeper than {}", name, kDeepest));
  if (object.is_none()) return nullptr;
  if (is_boolean(object)) return PyObject_IsTrue(object.ptr()) != 0;
  if (py::isinstance<py::str>(object)) return encode_utf8(object);
  if (py::isinstance<py::float_>(object)) return object.cast<double>();
  if (is_short_float(object)) return convert_by_spelling(static_cast<float>(PyFloat_AsDouble(object.ptr())));
  if (PyIndex_Check(object.ptr()) != 0) {  // Python's and numpy's integers
    const py::object number = require_result(PyNumber_Index(object.ptr()));
    try {
      if (number < py::int_(0)) return number.cast<std::int64_t>();
      return number.cast<std::uint64_t>();
    } catch (const py::cast_error&) {
      refuse(fmt::format("{}: the integer {} does not fit 64 bits", name, make_short_repr(number)));
    }
  }
  if (py::isinstance<py::bytes>(object)) {
    const auto bytes = object.cast<std::string_view>();
    const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
    return Value::Bytes(first, first + bytes.size());
  }
  if (py::isinstance<py::dict>(object))
    return parse_attributes(py::reinterpret_borrow<py::dict>(object), name, depth + 1);
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    Value::Array items;
    for (const py::handle item : object) items.push_back(parse_value(item, name, depth + 1));
    return items;
  }
  refuse(fmt::format("{}: expected None, bool, int, float, str, bytes, a list or a dict, found a {}", name,
                     encode_utf8(py::type::of(object).attr("__name__"))));
}

struct Converter {
  py::object operator()(std::nullptr_t) const { return py::none(); }
  py::object operator()(bool value) const { return py::bool_(value); }
  py::object operator()(std::int64_t value) const { return py::int_(value); }
  py::object operator()(std::uint64_t value) const { return py::int_(value); }
  py::object operator()(double value) const { return py::float_(value); }
  py::object operator()(const std::string& value) const { return make_text(value); }
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

py::str make_text(std::string_view utf8) {
  return py::reinterpret_steal<py::str>(
      require_result(PyUnicode_DecodeUTF8(utf8.data(), static_cast<Py_ssize_t>(utf8.size()), "surrogateescape"))
          .release());
}

std::string encode_utf8(py::handle text) {
  if (!PyUnicode_Check(text.ptr()))
    throw py::type_error(fmt::format("expected a str, found a {}", Py_TYPE(text.ptr())->tp_name));
  const py::object bytes = require_result(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  return std::string(bytes.cast<std::string_view>());
}

std::optional<std::string> parse_name(py::handle object) {
  if (!PyUnicode_Check(object.ptr())) return std::nullopt;
  try {
    return encode_utf8(object);
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_UnicodeEncodeError)) throw;
    return std::nullopt;
  }
}

std::filesystem::path parse_path(py::handle object) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(object.ptr(), &bytes) == 0) throw py::error_already_set();
  return std::filesystem::path(py::reinterpret_steal<py::bytes>(bytes).cast<std::string>());
}

std::string make_short_repr(py::handle object) {
  return encode_utf8(py::module_::import("reprlib").attr("repr")(object));
}

py::int_ parse_integer(std::string_view name, py::handle given) {
  if (is_boolean(given) || PyIndex_Check(given.ptr()) == 0)
    throw py::type_error(fmt::format("{} is {}, expected an integer", name, make_short_repr(given)));
  return require_result(PyNumber_Index(given.ptr()));
}

bool is_boolean(py::handle object) {
  const std::string_view type = Py_TYPE(object.ptr())->tp_name;
  return PyBool_Check(object.ptr()) || type == "numpy.bool_" || type == "numpy.bool";
}

bool parse_truth(std::string_view name, py::handle given) {
  if (is_boolean(given)) return PyObject_IsTrue(given.ptr()) != 0;
  throw py::type_error(fmt::format("{} is {}, expected True or False", name, make_short_repr(given)));
}

py::object to_python(const Value& value) { return std::visit(Converter(), value.storage()); }

py::dict to_python(const Attributes& attributes) {
  py::dict result;
  for (const auto& [key, value] : attributes) result[make_text(key)] = to_python(value);
  return result;
}

Attributes parse_attributes(const py::dict& dict) { return parse_attributes(dict, {}, 0); }

void set_card(const py::dict& fields, Card& card) {
  for (const auto& [key, value] : fields) {
    const std::string name = encode_utf8(key);
    const auto field = std::ranges::find(list_card_fields(), name, &CardField::name);
    if (field == list_card_fields().end()) {
      std::vector<std::string_view> names;
      for (const CardField& known : list_card_fields()) names.push_back(known.name);
      refuse(fmt::format("a card has no field \"{}\"; its fields are {}", name, fmt::join(names, ", ")));
    }
    card.*(field->text) = encode_utf8(value);
  }
}

py::list to_python(const std::vector<Finding>& findings) {
  py::list result;
  for (const Finding& finding : findings)
    result.append(py::make_tuple(finding.severity == Severity::error ? "error" : "warning", make_text(finding.message),
                                 make_text(finding.path), make_optional_number(finding.offset)));
  return result;
}

py::list to_python(const std::vector<std::string>& texts) {
  py::list result;
  for (const std::string& one : texts) result.append(make_text(one));
  return result;
}

py::tuple to_tuple(std::span<const std::uint64_t> numbers) {
  py::tuple result(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) result[i] = py::int_(numbers[i]);
  return result;
}

py::object make_optional_number(std::optional<std::uint64_t> number) {
  return number ? py::object(py::int_(*number)) : py::object(py::none());
}

DType parse_dtype(std::string_view name) {
  const auto found = dtype_from_name(name);
  if (!found) refuse(fmt::format("\"{}\" is not an element type", name));
  return *found;
}

}  // namespace poise::python
