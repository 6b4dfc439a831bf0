#include "ops/shared_bytes.hpp"

#include <fmt/format.h>

#include "ops/verify_part.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

bool has_place(const Part& part) { return part.blob->stored().has_value(); }

// Identifies the bytes and rules of a part: a check of its values depends only on these.
struct CheckedValues {
  CheckedValues(const Tensor& tensor, const Part& part) : bytes(part), rules(get_value_rules(tensor, part)) {}
  friend auto operator<=>(const CheckedValues&, const CheckedValues&) = default;

  DigestedBytes bytes;
  ValueRules rules;
};

// Identifies everything on which a check of a sparse tensor's indices depends.
struct CheckedIndices {
  // Requires: the blobs of all parts have places in files.
  explicit CheckedIndices(const Tensor& tensor)
      : layout(tensor.layout), rules(get_sparse_rules(tensor)), shape(tensor.shape) {
    for (const Part& part : tensor.parts) {
      roles.push_back(part.role);
      sizes.emplace_back(part.dtype, get_size_or_zero(*part.blob));
      if (part.role != "values") indices.emplace_back(part);
    }
  }
  friend auto operator<=>(const CheckedIndices&, const CheckedIndices&) = default;

  Layout layout;
  SparseRules rules;
  Shape shape;
  std::vector<std::string> roles;
  std::vector<std::pair<DType, std::uint64_t>> sizes;
  std::vector<DigestedBytes> indices;
};

template <typename Key>
SameBefore find_first_equal_part(const std::vector<PartRef>& parts, Key (*key)(const PartRef& part)) {
  std::vector<std::pair<Key, std::size_t>> keys;
  keys.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (has_place(*parts[i].part)) keys.emplace_back(key(parts[i]), i);
  }
  return find_first_equal(parts.size(), std::move(keys));
}

}  // namespace

DigestedBytes::DigestedBytes(const Part& part) : size(get_size_or_zero(*part.blob)) {
  if (part.digest) {
    digest = part.digest->text;
    over_stored = part.digest->over_stored;
  }
  Stored at = part.blob->stored().value();
  source = at.source.get();
  offset = at.offset;
  length = at.length;
  encoding = std::move(at.encoding);
  swapped = at.swapped;
}

std::vector<PartRef> list_parts(const Model& model) {
  std::vector<PartRef> parts;
  for (const Tensor& tensor : model.tensors()) {
    for (const Part& part : tensor.parts) parts.push_back({&tensor, &part});
  }
  return parts;
}

SameBefore find_first_with_same_bytes(const std::vector<PartRef>& parts) {
  return find_first_equal_part<DigestedBytes>(parts, [](const PartRef& ref) { return DigestedBytes(*ref.part); });
}

SameBefore find_first_with_same_values(const std::vector<PartRef>& parts) {
  return find_first_equal_part<CheckedValues>(parts,
                                              [](const PartRef& ref) { return CheckedValues(*ref.tensor, *ref.part); });
}

SameBefore find_first_with_same_indices(const Model& model) {
  std::vector<std::pair<CheckedIndices, std::size_t>> keys;
  std::size_t index = 0;
  for (const Tensor& tensor : model.tensors()) {
    if (is_sparse(tensor) && std::ranges::all_of(tensor.parts, has_place))
      keys.emplace_back(CheckedIndices(tensor), index);
    ++index;
  }
  return find_first_equal(model.size(), std::move(keys));
}

namespace {

constexpr std::string_view kTensor = "tensor ";

Error copy_remedies(Error error, const Error& other) {
  for (const Remedy& remedy : other.remedies()) error = std::move(error).with(remedy);
  return error;
}

// Adds the names of the tensor and part whose bytes contain the error's offset.
Error add_tensor_and_part(const Error& error, const std::vector<const Model*>& models) {
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

// Returns the place of the part with whose role `problem` begins, or else of the tensor's first part that has a place.
// `problem` is the message of an error, after the tensor's name.
std::optional<Stored> find_place_in(const Tensor& tensor, std::string_view problem) {
  std::optional<Stored> first;
  for (const Part& part : tensor.parts) {
    auto at = part.blob->stored();
    if (at && problem.starts_with(part.role) && problem.substr(part.role.size()).starts_with(": ")) return at;
    if (at && !first) first = std::move(at);
  }
  return first;
}

// Adds the place of the tensor that the message of a computation names.
Error add_place(const Error& error, const std::vector<const Model*>& models) {
  const std::string_view message = std::string_view(error.message()).substr(kTensor.size());
  const Tensor* found = nullptr;  // the longest matching name, because a name may contain any text
  for (const Model* model : models) {
    for (const Tensor& tensor : model->tensors()) {
      if (!message.starts_with(tensor.name) || !message.substr(tensor.name.size()).starts_with(": ")) continue;
      if (found == nullptr || found->name.size() < tensor.name.size()) found = &tensor;
    }
  }
  const auto at = found != nullptr ? find_place_in(*found, message.substr(found->name.size() + 2)) : std::nullopt;
  return at ? copy_remedies(Error(error.kind(), error.message(), at->source->name(), at->offset), error) : error;
}

}  // namespace

Error add_part_name(const Error& error, const std::vector<const Model*>& models) {
  const bool names_tensor = error.message().starts_with(kTensor);
  if (error.kind() == ErrorKind::invalid_file && error.offset() && !names_tensor)
    return add_tensor_and_part(error, models);
  const bool is_about_values = error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported;
  if (is_about_values && error.path().empty() && names_tensor) return add_place(error, models);
  return error;
}

}  // namespace poise
