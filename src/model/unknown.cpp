#include "model/unknown.hpp"

#include <optional>
#include <string>

#include <fmt/format.h>

namespace poise {

void find_unknown(const Model& model, bool (*is_known_layout)(std::string_view), std::vector<Finding>& findings) {
  const auto tell = [&](const Tensor& tensor, std::string what, const Part* part) {
    const auto at = part == nullptr ? std::nullopt : part->blob->stored();
    findings.push_back(
        {Severity::warning,
         fmt::format("tensor {}: {} is not known to this version of Poise: its elements were not checked", tensor.name,
                     what),
         at ? at->source->name() : model.origin.path.string(), at ? std::optional(at->offset) : std::nullopt,
         std::string(tensor.name)});
  };
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.layout.is_carried() && !is_known_layout(tensor.layout.name()))
      tell(tensor, fmt::format("the layout \"{}\"", tensor.layout.name()),
           tensor.parts.empty() ? nullptr : &tensor.parts.front());
    for (const Part& part : tensor.parts) {
      if (part.dtype == DType::unknown)
        tell(tensor, fmt::format("{}: the type \"{}\"", part.role, part.type_name()), &part);
    }
  }
}

}  // namespace poise
