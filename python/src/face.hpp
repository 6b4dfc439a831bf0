// Declarations that the parts of the extension share: the namespace, conversions of text, and the functions that
// declare the parts.
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

void declare_errors(py::module_& module);
void declare_memory(py::module_& module);
void declare_model(py::module_& module);
void declare_tensors(py::module_& module);
void declare_operations(py::module_& module);

[[noreturn]] void refuse(std::string message);   // bad_argument
std::string make_short_repr(py::handle object);  // for an error

// Returns text that may be invalid UTF-8: invalid bytes become lone surrogates, as in Python's file names.
py::str text(std::string_view utf8);
std::string utf8(py::handle text);
// Returns the same for a name to find: std::nullopt for other objects, and for texts that no file can hold.
std::optional<std::string> name_from(py::handle object);
// str, bytes or os.PathLike, as for Python's open(). Throws what it raises.
std::filesystem::path path_from(py::handle object);

// Converts an integer of Python or numpy, or another index. Throws TypeError for other objects.
py::int_ integer_from(std::string_view name, py::handle given);
// Converts one from `least` on. Throws TypeError for other objects, and bad_argument out of range: "seed is -1,
// expected an integer from 0 to 18446744073709551615".
template <typename Number>
Number parse_whole(std::string_view name, py::handle given, Number least = std::numeric_limits<Number>::min()) {
  const py::int_ number = integer_from(name, given);
  try {
    const auto result = number.cast<Number>();
    if (result >= least) return result;
  } catch (const py::cast_error&) {
  }
  refuse(fmt::format("{} is {}, expected an integer from {} to {}", name, make_short_repr(given), least,
                     std::numeric_limits<Number>::max()));
}

// Python's True and False, or numpy's.
bool is_boolean(py::handle object);
// Returns its value. Throws TypeError for other objects.
bool parse_truth(std::string_view name, py::handle given);

py::object to_python(const Value& value);
py::dict to_python(const Attributes& attributes);
// Throws bad_argument for what files cannot hold.
Attributes attributes_from(const py::dict& dict);

// Returns the vocabulary of a Vocabulary, a Tokenizer or an OpenModel. Throws TypeError for others, and unsupported if
// it has none.
Vocabulary vocabulary_from(const py::object& given);

// Replaces fields of a card. Throws bad_argument for an unknown field, and TypeError for a value other than text.
void set_card(const py::dict& fields, Card& card);

py::list to_python(const std::vector<Finding>& findings);
py::list to_python(const std::vector<std::string>& texts);
py::tuple to_tuple(std::span<const std::uint64_t> numbers);
py::object make_optional_number(std::optional<std::uint64_t> number);  // None for std::nullopt

// Throws bad_argument.
DType dtype_from(std::string_view name);

// A model opened by Python, until it is closed. Used under the GIL.
class OpenModel {
 public:
  explicit OpenModel(Model model) : model_(std::make_shared<const Model>(std::move(model))) {}

  // Throws bad_argument when it is closed. The result stays valid.
  std::shared_ptr<const Model> use() const {
    if (!model_) refuse("the model is closed");
    return model_;
  }
  bool is_open() const { return model_ != nullptr; }
  void close() { model_.reset(); }

 private:
  std::shared_ptr<const Model> model_;
};

}  // namespace poise::python
