// Objects: what a file of any version of zTensor stores of one tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/tensor.hpp>

#include "io/extents.hpp"
#include "syntax/cbor.hpp"
#include "syntax/value_budget.hpp"

namespace poise::ztensor {

// One run of stored bytes (a component in 1.x, a part in 2). Texts are views: the cursor that read them, and what it
// reads, outlive this.
struct Component {
  std::string_view role;
  DType dtype = DType::unknown;
  std::string spelling;  // as Part::spelling
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // stored
  std::string_view encoding = "raw";
  std::optional<std::uint64_t> decoded_length;  // if the file has it
  std::string_view digest;                      // empty: none
  std::string_view shard;                       // version 2; empty: this file
  std::uint64_t position = 0;                   // of its map in the manifest
};

struct Object {
  std::string_view name;
  Shape shape;
  std::string_view layout = "dense";  // "format" in 1.x
  Attributes attributes;
  std::vector<Component> components;
  bool big_endian = false;     // version 0.1
  std::uint64_t position = 0;  // of its map in the manifest
};

// Clears `object`, keeping its memory, for one that begins at the cursor. Fails when there are already as many as a
// model may have tensors.
void begin_object(Object& object, std::size_t already, const cbor::Cursor& in);

// An array of at most kMaxRank numbers.
Shape parse_shape(cbor::Cursor& in);

// Text that names a type, a layout, an encoding or a digest: short, since it may be kept for every part.
std::string_view parse_type_name(cbor::Cursor& in);

// A digest of no bytes, of the usual length; empty for DigestAlgorithm::none.
std::string digest_of_nothing(DigestAlgorithm algorithm);

// The cost of a manifest with these attributes in its reader's budget. Tensors are StoredTensor or Tensor.
template <typename Tensors>
std::uint64_t manifest_cost(const Attributes& attributes, const Tensors& tensors) {
  std::uint64_t cost = reading_cost(attributes);
  for (const auto& tensor : tensors)
    cost += reading_cost(Value(tensor.name)) + (tensor.attributes.empty() ? 0 : reading_cost(tensor.attributes));
  return cost;
}

// The part of an extent. Requires: the tensor has it.
const Part& part_at(const Tensor& tensor, const Extent& extent);

// A tensor's name, cut if it is too long for a message.
std::string short_name(std::string_view name);

}  // namespace poise::ztensor
