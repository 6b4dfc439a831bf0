#include "views/check_parts.hpp"

#include <algorithm>

#include "views/layout_type.hpp"

namespace poise {
namespace {

// True when type and decoded size of a part are known.
bool is_known(const Part& part) { return part.dtype != DType::unknown && part.blob->decodable(); }

}  // namespace

void check_parts(const Tensor& tensor) {
  const LayoutType& type = layout_type(tensor.layout);
  if (type.check == nullptr) return;
  if (!type.needs_known_parts || std::ranges::all_of(tensor.parts, is_known)) type.check(tensor);
}

void check_content(const Tensor& tensor) {
  check_parts(tensor);
  const LayoutType& type = layout_type(tensor.layout);
  if (type.check_content != nullptr && std::ranges::all_of(tensor.parts, is_known)) type.check_content(tensor);
}

}  // namespace poise
