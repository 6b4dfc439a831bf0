// Decodes poise.block_scaled/1: floating-point numbers with a scale for each block of a matrix.
//
//   data     of any floating-point type but f64, in the tensor's shape [..., rows, columns]
//   scales   f32, one a block: [..., rows / block rows, columns / block columns], both rounded up
//
// The attribute block_shape is [rows, columns] of a block; the last blocks may be short. value = data * scale.
#include "views/groups.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "tensor/part_types.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

constexpr std::string_view kShape = "block_shape";

std::optional<TensorLayout> read_block_scaled(const Tensor& tensor, std::string_view name) {
  if (name != kBlockScaled) return std::nullopt;
  if (tensor.shape.size() < 2)
    fail_parts(tensor, fmt::format("{} needs a matrix, found the shape {}", kBlockScaled, to_string(tensor.shape)));
  const auto* sizes = tensor.attributes.get_if<Value::Array>(kShape);
  const auto read_size = [&](std::size_t i) -> std::uint64_t {
    const auto* number = sizes == nullptr || sizes->size() != 2 ? nullptr : (*sizes)[i].get_if<std::uint64_t>();
    if (number == nullptr || *number == 0)
      fail_parts(tensor, fmt::format("attribute {}: expected two positive integers", kShape));
    return *number;
  };
  return make_block_scaled_layout({read_size(0), read_size(1)});
}

std::optional<std::uint64_t> count_block_scales(const Tensor& tensor) {
  const BlockShape& block = get_block_scaled_shape(tensor);
  const std::size_t rank = tensor.shape.size();
  std::optional<std::uint64_t> count =
      checked_mul(ceil_div(tensor.shape[rank - 2], block.rows), ceil_div(tensor.shape[rank - 1], block.columns));
  for (std::size_t d = 0; d + 2 < rank && count; ++d) count = checked_mul(*count, tensor.shape[d]);
  return count;
}

BlobPtr make_block_scaled_elements(const Tensor& tensor) {
  check_block_scaled(tensor);
  const std::uint64_t rows = tensor.shape[tensor.shape.size() - 2];
  const std::uint64_t columns = tensor.shape.back();
  const auto compute = [block = get_block_scaled_shape(tensor), rows, columns](
                           const Blob& data, std::span<const LoadedBlob> kept, std::uint64_t first,
                           std::span<float> out) {
    data.read(first * sizeof(float), std::as_writable_bytes(out));
    const std::uint64_t across = ceil_div(columns, block.columns);
    for (std::size_t i = 0; i < out.size();) {
      const std::uint64_t column = (first + i) % columns;
      const std::uint64_t row = (first + i) / columns;
      const std::uint64_t block_row = row / rows * ceil_div(rows, block.rows) + row % rows / block.rows;
      const auto scale = kept[0].at<float>(block_row * across + column / block.columns);
      const std::uint64_t left = std::min(columns - column, block.columns - column % block.columns);
      const std::size_t end = i + static_cast<std::size_t>(std::min<std::uint64_t>(left, out.size() - i));
      for (; i < end; ++i) out[i] *= scale;
    }
  };
  const Part& data = tensor.require("data");
  return make_float_blob(tensor.elements(),
                         make_cast_blob(tensor.name, data.blob, data.dtype, tensor.elements(), DType::f32),
                         {tensor.require("scales").blob}, compute);
}

std::string describe_block_scaled_type(const Tensor& tensor) {
  const BlockShape& block = get_block_scaled_shape(tensor);
  return fmt::format("{}:{}x{}", tensor.require("data").shown_type(), block.rows, block.columns);
}

bool have_same_block_shape(const Tensor& a, const Tensor& b) {
  return get_block_scaled_shape(a) == get_block_scaled_shape(b);
}
bool is_shape_attribute(std::string_view attribute) { return attribute == kShape; }

}  // namespace

const LayoutType layouts::block_scaled = {
    .name = kBlockScaled,
    .quantized = true,
    .read = read_block_scaled,
    .check = check_block_scaled,
    .needs_known_parts = true,
    .has_float_elements = has_known_types,
    .elements = make_block_scaled_elements,
    .stored_type = describe_block_scaled_type,
    .same_scheme = have_same_block_shape,
    .is_scheme_attribute = is_shape_attribute,
};

TensorLayout make_block_scaled_layout(const BlockShape& shape) {
  return TensorLayout::with_scheme(kBlockScaled, shape);
}

Attributes make_block_scaled_attributes(const BlockShape& shape) {
  return {{std::string(kShape), Value::Array{shape.rows, shape.columns}}};
}

const BlockShape& get_block_scaled_shape(const Tensor& tensor) { return *tensor.layout.scheme<BlockShape>(); }

void check_block_scaled(const Tensor& tensor) {
  require_roles(tensor, {"data", "scales"});
  const Part& data = tensor.require("data");
  if (!has_known_types(tensor)) return;
  if (!is_floating(data.dtype) || !can_widen(data.dtype))
    fail_parts(tensor,
               fmt::format("data: expected floating-point numbers of at most 32 bits, found {}", data.type_name()));
  require_elements(tensor, data, tensor.elements());
  const Part& scales = tensor.require("scales");
  require_type(tensor, scales, DType::f32);
  require_elements(tensor, scales, count_block_scales(tensor));
}

}  // namespace poise
