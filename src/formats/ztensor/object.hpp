// Objects: what every version of zTensor says about one tensor, before it becomes one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <poise/tensor.hpp>

#include "io/extents.hpp"
#include "syntax/cbor.hpp"
#include "syntax/value_budget.hpp"

namespace poise::ztensor {

// One run of stored bytes (a component in 1.x, a part in 2).
struct Component {
  std::string role;
  DType dtype = DType::unknown;
  std::string dtype_name;  // as the file spells it
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // stored
  std::string encoding = "raw";
  std::optional<std::uint64_t> decoded_length;  // where the file says it
  std::string digest;                           // empty: none
  std::string shard;                            // version 2; empty: this file
  std::uint64_t position = 0;                   // of its map in the manifest
};

struct Object {
  std::string name;
  Shape shape;
  std::string layout = "dense";  // "format" in 1.x
  Attributes attributes;
  std::vector<Component> components;
  bool big_endian = false;     // version 0.1
  std::uint64_t position = 0;  // of its map in the manifest
};

// Makes `object` an empty one that begins at the cursor, in the memory it has. Fails when there are as many already as
// a model may have tensors.
void begin_object(Object& object, std::size_t already, const cbor::Cursor& in);

// An array of at most kMaxRank numbers.
Shape parse_shape(cbor::Cursor& in);

// Text that names a type, a layout, an encoding or a digest: short, for it may be kept for every part.
std::string_view parse_type_name(cbor::Cursor& in);

// The digest of no bytes, as long as any other; empty for DigestAlgorithm::none.
std::string digest_of_nothing(DigestAlgorithm algorithm);

// What a manifest with these attributes takes of the budget of its reader. Tensors are StoredTensor or Tensor.
template <typename Tensors>
std::uint64_t manifest_cost(const Attributes& attributes, const Tensors& tensors) {
  std::uint64_t cost = reading_cost(attributes);
  for (const auto& tensor : tensors)
    cost += reading_cost(Value(tensor.name)) + (tensor.attributes.empty() ? 0 : reading_cost(tensor.attributes));
  return cost;
}

// The part whose bytes an extent is. Requires: the tensor has it.
const Part& part_at(const Tensor& tensor, const Extent& extent);

// A tensor's name, cut off where it is too long for a sentence that is kept for every part.
std::string short_name(std::string_view name);

}  // namespace poise::ztensor
