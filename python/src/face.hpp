// Declares functions that the parts of the extension share: conversions between the objects of C++ and of Python, and
// the functions that declare the parts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <poise/dtype.hpp>
#include <poise/error.hpp>
#include <poise/finding.hpp>
#include <poise/model.hpp>
#include <poise/value.hpp>

#include "gil.hpp"

namespace poise::python {

namespace py = pybind11;

// Each function adds the classes and functions of a part to the module.
void declare_errors(py::module_& module);
void declare_memory(py::module_& module);
void declare_model(py::module_& module);
void declare_tensors(py::module_& module);
void declare_operations(py::module_& module);
void declare_making(py::module_& module);

// Throws bad_argument.
[[noreturn]] void refuse(std::string message);
// Returns Python's repr() of an object, shortened, for messages.
std::string make_short_repr(py::handle object);

// Returns a str. Invalid bytes become lone surrogates, as in Python's file names.
py::str make_text(std::string_view utf8);
// Returns the bytes of a str; lone surrogates become the bytes that they stand for. Throws TypeError for other objects,
// and UnicodeEncodeError for surrogates that stand for no byte.
std::string encode_utf8(py::handle text);
// Returns the bytes of a name to look up; std::nullopt for other objects than str, and for texts that no file can hold.
std::optional<std::string> parse_name(py::handle object);
// Converts a str, bytes or os.PathLike, as Python's open() does. Throws the exceptions that open() raises.
std::filesystem::path parse_path(py::handle object);

// Converts an integer of Python or numpy, or another object with __index__(). Throws TypeError for booleans and for
// other objects.
py::int_ parse_integer(std::string_view name, py::handle given);
// Converts an integer to Number. Throws TypeError for other objects, and bad_argument for one below `least` or out of
// range: "seed is -1, expected an integer from 0 to 18446744073709551615".
template <typename Number>
Number parse_whole(std::string_view name, py::handle given, Number least = std::numeric_limits<Number>::min()) {
  const py::int_ number = parse_integer(name, given);
  try {
    const auto result = number.cast<Number>();
    if (result >= least) return result;
  } catch (const py::cast_error&) {
  }
  refuse(fmt::format("{} is {}, expected an integer from {} to {}", name, make_short_repr(given), least,
                     std::numeric_limits<Number>::max()));
}

// Returns true for Python's True and False, and numpy's.
bool is_boolean(py::handle object);
// Returns the value of a boolean of Python or numpy. Throws TypeError for other objects.
bool parse_truth(std::string_view name, py::handle given);

// Each function converts plain data to Python's objects.
py::object to_python(const Value& value);
py::dict to_python(const Attributes& attributes);
// Converts a dict to attributes. Throws bad_argument for values that files cannot hold.
Attributes parse_attributes(const py::dict& dict);

// Returns a copy of the vocabulary of a Vocabulary, a Tokenizer or an OpenModel. Throws TypeError for other objects,
// and unsupported for a model without one.
Vocabulary copy_vocabulary(const py::object& given);

// Replaces fields of a card. Throws bad_argument for an unknown field, and TypeError for a value other than text.
void set_card(const py::dict& fields, Card& card);

// Returns tuples (severity, message, path, offset or None).
py::list to_python(const std::vector<Finding>& findings);
py::list to_python(const std::vector<std::string>& texts);
py::tuple to_tuple(std::span<const std::uint64_t> numbers);
py::object make_optional_number(std::optional<std::uint64_t> number);  // None for std::nullopt

// Returns the element type of that name. Throws bad_argument for other names.
DType parse_dtype(std::string_view name);

// Holds a model until Python closes it. Requires: the GIL.
class OpenModel {
 public:
  explicit OpenModel(Model model) : model_(std::make_shared<const Model>(std::move(model))) {}

  // Returns the model, which stays valid after close(). Throws bad_argument when it is closed.
  std::shared_ptr<const Model> require_model() const {
    if (!model_) refuse("the model is closed");
    return model_;
  }
  bool is_open() const { return model_ != nullptr; }
  void close() { model_.reset(); }

 private:
  std::shared_ptr<const Model> model_;
};

}  // namespace poise::python
