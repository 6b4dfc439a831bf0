#include "views/first_rows.hpp"

#include "tensor/block_layout.hpp"
#include "tensor/group_scheme.hpp"
#include "views/layout_type.hpp"
#include "views/mx.hpp"
#include "views/row_order.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

bool has_whole_bytes(const Tensor& tensor) {
  return tensor.layout == Layout::dense && info(tensor.require("data").dtype).bits % 8 == 0;
}

// Returns true if each part stores the rows one after the other, each in the same whole number of bytes.
bool has_rows_in_order(const Tensor& tensor) {
  const bool is_matrix = tensor.shape.size() > 1;  // a vector's elements share blocks
  if (get_block_type(tensor.layout) != nullptr)
    return is_matrix && get_block_direction(tensor.layout) == BlocksAlong::rows;
  if (is_mxfp4(tensor)) return is_matrix;
  if (has_whole_bytes(tensor)) return true;
  const std::size_t last = tensor.shape.size() - 1;
  const std::uint64_t columns = *element_count(Shape(tensor.shape.begin() + 1, tensor.shape.end()));
  if (tensor.layout == Layout::affine) return columns * info(tensor.require("data").dtype).bits % 8 == 0;
  const GroupScheme* groups = get_group_scheme(tensor.layout);
  return groups != nullptr && is_matrix && groups->axis == last && groups->packing_axis == last &&
         groups->group_size > 0 && groups->zeros != GroupScheme::Zeros::packed && columns % groups->per_word == 0;
}

}  // namespace

Tensor keep_first_rows(const Tensor& tensor, std::uint64_t rows) {
  if (!has_rows_in_order(tensor)) return keep_first_rows(make_dense_numbers(tensor), rows);
  check_parts(tensor);
  Tensor result = tensor;
  result.shape.front() = rows;
  for (Part& part : result.parts) {
    const std::uint64_t bytes = part.blob->size() / tensor.shape.front() * rows;
    part.blob = make_strided_blob(part.blob, {.shape = {bytes}, .strides = {1}, .item_bytes = 1});
    part.digest = {};
  }
  if (!is_mxfp4(tensor)) return result;
  return make_mxfp4(result.name, result.shape, result.require("data").blob, result.require("scales").blob);
}

Tensor keep_first_columns(const Tensor& matrix, std::uint64_t columns) {
  const bool is_movable = has_whole_bytes(matrix) || get_block_direction(matrix.layout) == BlocksAlong::columns;
  return transpose_view(keep_first_rows(transpose_view(is_movable ? matrix : make_dense_numbers(matrix)), columns));
}

}  // namespace poise
