#include "formats/ztensor/object.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "bytes/short_text.hpp"
#include "model/limits.hpp"
#include "pack/part_digest.hpp"

namespace poise::ztensor {

void begin_object(StoredObject& object, std::size_t already, const cbor::Cursor& in) {
  if (already == kMaxTensors) in.fail(fmt::format("more than {} tensors", kMaxTensors), in.position());
  std::vector<Component> components = std::move(object.components);
  components.clear();
  object = {};
  object.components = std::move(components);
  object.position = in.position();
}

Shape parse_shape(cbor::Cursor& in) {
  Shape shape;
  auto dimensions = in.read_array();
  shape.reserve(std::min<std::uint64_t>(dimensions.size_hint(), kMaxRank));
  while (dimensions.next()) {
    if (shape.size() == kMaxRank) in.fail(fmt::format("a rank of more than {}", kMaxRank), in.position());
    shape.push_back(in.read_u64());
  }
  return shape;
}

std::string_view parse_type_name(cbor::Cursor& in) {
  const std::uint64_t begin = in.position();
  const std::string_view text = in.read_text();
  if (text.size() > kMaxTypeNameBytes)
    in.fail(fmt::format("a name of {} bytes, at most {} are allowed", text.size(), kMaxTypeNameBytes), begin);
  return text;
}

std::string compute_empty_digest(DigestAlgorithm algorithm) {
  const auto hasher = make_hasher(algorithm);
  return hasher ? format_digest(algorithm, hasher->finish()) : std::string();
}

const Part& find_part(const Tensor& tensor, const Extent& extent) {
  const auto is_there = [&](const Part& part) {
    const auto place = part.blob->stored();
    return place && place->offset == extent.begin && place->length == extent.length;
  };
  const auto found = std::ranges::find_if(tensor.parts, is_there);
  return found == tensor.parts.end() ? tensor.parts.front() : *found;
}

std::string shorten_name(std::string_view name) {
  constexpr std::size_t kLongest = 64;
  return shorten(name, kLongest);
}

}  // namespace poise::ztensor
