// What the parts of the extension share: its namespace, text in and out of Python, and one function a part that
// declares it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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
void declare_runtime(py::module_& module);

[[noreturn]] void refuse(std::string message);  // bad_argument

// Files may hold any bytes where text belongs: those that are no UTF-8 become lone surrogates, as in Python's own file
// names, and back.
py::str text(std::string_view utf8);
std::string utf8(py::handle text);
// The same for a name to look for: nothing for what is no text, or none that a file could hold.
std::optional<std::string> name_from(py::handle object);
// str, bytes or os.PathLike, as Python's own open() takes them. Throws what it raises.
std::filesystem::path path_from(py::handle object);

py::object to_python(const Value& value);
py::dict to_python(const Attributes& attributes);
// Throws bad_argument for what files cannot hold.
Attributes attributes_from(const py::dict& dict);

py::object to_python(const Finding& finding);
py::object optional_number(std::optional<std::uint64_t> number);  // None for nothing

// Throws bad_argument.
DType dtype_from(std::string_view name);

// A model that Python opened, until it closes it. Used under the GIL.
class OpenModel {
 public:
  explicit OpenModel(Model model) : model_(std::make_shared<const Model>(std::move(model))) {}

  // Throws bad_argument when it is closed. What is returned stays valid whatever Python does.
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
