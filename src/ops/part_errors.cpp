#include "ops/part_errors.hpp"

#include <string_view>

#include <fmt/format.h>

namespace poise {
namespace {

constexpr std::string_view kTensor = "tensor ";

Error with_remedies_of(Error error, const Error& other) {
  for (const Remedy& remedy : other.remedies()) error = std::move(error).with(remedy);
  return error;
}

// Names the part whose bytes hold the place of a decoder's error.
Error named(const Error& error, std::initializer_list<const Model*> models) {
  for (const Model* model : models) {
    for (const Tensor& tensor : model->tensors()) {
      for (const Part& part : tensor.parts) {
        const auto at = part.blob->stored();
        if (!at || *error.offset() < at->offset || *error.offset() - at->offset >= at->length ||
            at->source->name() != error.path())
          continue;
        return Error(error.kind(), fmt::format("tensor {}: {}: {}", tensor.name, part.role, error.message()),
                     error.path(), error.offset());
      }
    }
  }
  return error;
}

// The place of the part that the message names after the tensor, or of the tensor's first part.
std::optional<Stored> place_in(const Tensor& tensor, std::string_view problem) {
  std::optional<Stored> first;
  for (const Part& part : tensor.parts) {
    auto at = part.blob->stored();
    if (at && problem.starts_with(part.role) && problem.substr(part.role.size()).starts_with(": ")) return at;
    if (at && !first) first = std::move(at);
  }
  return first;
}

// The place of the tensor that the message of a computation names.
Error placed(const Error& error, std::initializer_list<const Model*> models) {
  const std::string_view message = std::string_view(error.message()).substr(kTensor.size());
  const Tensor* found = nullptr;  // the longest matching name: names may contain anything that messages do
  for (const Model* model : models) {
    for (const Tensor& tensor : model->tensors()) {
      if (!message.starts_with(tensor.name) || !message.substr(tensor.name.size()).starts_with(": ")) continue;
      if (found == nullptr || found->name.size() < tensor.name.size()) found = &tensor;
    }
  }
  const auto at = found != nullptr ? place_in(*found, message.substr(found->name.size() + 2)) : std::nullopt;
  return at ? with_remedies_of(Error(error.kind(), error.message(), at->source->name(), at->offset), error) : error;
}

}  // namespace

Error with_part_named(const Error& error, std::initializer_list<const Model*> models) {
  const bool names_tensor = error.message().starts_with(kTensor);
  if (error.kind() == ErrorKind::invalid_file && error.offset() && !names_tensor) return named(error, models);
  const bool is_about_values = error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported;
  if (is_about_values && error.path().empty() && names_tensor) return placed(error, models);
  return error;
}

}  // namespace poise
