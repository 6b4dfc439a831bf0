#include "views/transposed.hpp"

#include <cstdint>
#include <utility>

#include "tensor/block_layout.hpp"
#include "views/strided.hpp"

namespace poise {

Tensor transposed(Tensor matrix) {
  const Shape shape{matrix.shape[1], matrix.shape[0]};
  if (const BlockType* blocks = block_type(matrix.layout)) {
    const bool columns = blocks_along(matrix.layout) == BlocksAlong::columns;
    matrix.layout = block_layout(*blocks, columns ? BlocksAlong::rows : BlocksAlong::columns);
    matrix.shape = shape;
    return matrix;
  }
  const Part& data = matrix.require("data");
  const unsigned item = info(data.dtype).bits / 8;
  const auto row_bytes = static_cast<std::int64_t>(matrix.shape[1] * item);
  return make_dense(matrix.name, shape, data.dtype,
                    make_strided_blob(data.blob, {.shape = shape, .strides = {item, row_bytes}, .item_bytes = item}));
}

}  // namespace poise
