#include "model/unknown.hpp"

#include <optional>
#include <string>

#include <fmt/format.h>

namespace poise {

void find_unknown(const Model& model, bool (*is_known_layout)(std::string_view), std::vector<Finding>& findings) {
  const auto tell = [&](std::string what, const Part* part) {
    const auto at = part == nullptr ? std::nullopt : part->blob->stored();
    findings.push_back({Severity::warning,
                        fmt::format("{} is not known to this version of Poise: its elements were not checked", what),
                        at ? at->source->name() : model.origin.path.string(),
                        at ? std::optional(at->offset) : std::nullopt});
  };
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.layout.is_carried() && !is_known_layout(tensor.layout.name()))
      tell(fmt::format("tensor {}: the layout \"{}\"", tensor.name, tensor.layout.name()),
           tensor.parts.empty() ? nullptr : &tensor.parts.front());
    for (const Part& part : tensor.parts) {
      if (part.dtype == DType::unknown)
        tell(fmt::format("tensor {}: {}: the type \"{}\"", tensor.name, part.role, part.type_name()), &part);
    }
  }
}

}  // namespace poise
