#include "formats/ztensor/object.hpp"

#include <fmt/format.h>

#include "bytes/limits.hpp"

namespace poise::ztensor {

Object& append_object(std::vector<Object>& objects, const cbor::Cursor& in) {
  if (objects.size() == kMaxTensors) in.fail(fmt::format("more than {} tensors", kMaxTensors), in.position());
  Object& object = objects.emplace_back();
  object.position = in.position();
  return object;
}

Shape parse_shape(cbor::Cursor& in) {
  Shape shape;
  for (auto dimensions = in.array(); dimensions.next();) {
    if (shape.size() == kMaxRank) in.fail(fmt::format("a rank of more than {}", kMaxRank), in.position());
    shape.push_back(in.u64());
  }
  return shape;
}

}  // namespace poise::ztensor
