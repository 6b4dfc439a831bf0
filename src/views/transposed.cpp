#include "views/transposed.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "tensor/block_layout.hpp"
#include "views/strided.hpp"

namespace poise {

Tensor transposed(Tensor tensor) {
  const std::size_t last = tensor.shape.size() - 1;
  Shape shape = tensor.shape;
  std::swap(shape[last - 1], shape[last]);
  if (const BlockType* blocks = block_type(tensor.layout)) {
    const bool columns = blocks_along(tensor.layout) == BlocksAlong::columns;
    tensor.layout = block_layout(*blocks, columns ? BlocksAlong::rows : BlocksAlong::columns);
    tensor.shape = shape;
    return tensor;
  }
  const Part& data = tensor.require("data");
  const unsigned item = info(data.dtype).bits / 8;
  std::vector<std::int64_t> strides = row_major_strides(tensor.shape, item);
  std::swap(strides[last - 1], strides[last]);
  return make_dense(tensor.name, shape, data.dtype,
                    make_strided_blob(data.blob, {.shape = shape, .strides = std::move(strides), .item_bytes = item}));
}

}  // namespace poise
