// Runs a single step of a conversion, for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ops/transform/transform.hpp"

namespace poise {

// Describes a conversion of a model without configuration to a format.
struct StepTest {
  explicit StepTest(std::string_view format, ConvertOptions changes = {})
      : options(std::move(changes)), conversion{model, model, find_format_by_name(format), options} {}
  StepTest(const StepTest&) = delete;

  Model model;
  ConvertOptions options;
  Conversion conversion;
};

inline Tensor zeros(const std::string& name, Shape shape, DType dtype) {
  const std::uint64_t bytes = *packed_bytes(dtype, *element_count(shape));
  return make_dense(name, std::move(shape), dtype,
                    make_memory_blob(std::vector<std::byte>(static_cast<std::size_t>(bytes)), name));
}

inline std::vector<std::string> warnings_of(const TensorPlan& plan) {
  std::vector<std::string> texts;
  for (const TensorPlan::Warning& warning : plan.warnings) texts.push_back(warning.subject + ": " + warning.text);
  return texts;
}

inline TensorPlan applied(MakeStep make, const StepTest& test, TensorPlan plan) {
  make(test.conversion)->apply(plan);
  return plan;
}

}  // namespace poise
