#include "ops/transform/step.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"
#include "views/sparse.hpp"

namespace poise {

bool has_layout_for(const Format& target, const Tensor& tensor) {
  return holds_layout(target, layout_type(tensor.layout)) || !(has_float_elements(tensor) || is_sparse(tensor));
}

bool blocks_run_along_columns(const Conversion& conversion, const Tensor& tensor) {
  return tensor.shape.size() == 2 && holds_layout(conversion.target, layouts::blocks) && has_float_elements(tensor) &&
         !(is_sparse(tensor) && has_layout_for(conversion.target, tensor)) &&
         runs_along_columns(conversion.input, tensor.name);
}

bool has_other_parts(const Tensor& tensor) { return tensor.layout == Layout::dense && tensor.parts.size() > 1; }

void refuse_pattern(std::string_view option, std::string_view pattern) {
  throw Error(ErrorKind::bad_argument, fmt::format("{}: the pattern \"{}\" matches no tensor", option, pattern));
}

void add_warning(Model& model, const std::vector<std::string>& tensors, std::string_view text) {
  if (tensors.empty()) return;
  model.warnings.push_back({Severity::warning, fmt::format("tensor {}: {}", listed(tensors, 1), text), {}, {}});
}

}  // namespace poise
