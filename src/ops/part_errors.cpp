#include "ops/part_errors.hpp"

#include <fmt/format.h>

namespace poise {

Error with_part_named(const Error& error, std::initializer_list<const Model*> models) {
  if (error.kind() != ErrorKind::invalid_file || !error.offset() || error.message().starts_with("tensor ")) return error;
  for (const Model* model : models) {
    for (const Tensor& tensor : model->tensors()) {
      for (const Part& part : tensor.parts) {
        const auto at = part.blob->stored();
        if (!at || *error.offset() < at->offset || *error.offset() - at->offset >= at->length || at->source->name() != error.path()) continue;
        return Error(error.kind(), fmt::format("tensor {}: {}: {}", tensor.name, part.role, error.message()), error.path(), error.offset());
      }
    }
  }
  return error;
}

}  // namespace poise
