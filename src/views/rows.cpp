#include "views/rows.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tensor/block_layout.hpp"
#include "views/check_parts.hpp"
#include "views/dense.hpp"
#include "views/joined.hpp"
#include "views/mx_blocks.hpp"
#include "views/strided.hpp"

namespace poise {
namespace {

bool has_whole_rows(const Tensor& tensor) {
  if (tensor.layout == Layout::dense) return info(tensor.require("data").dtype).bits % 8 == 0;
  if (block_type(tensor.layout) != nullptr) return blocks_along(tensor.layout) == BlocksAlong::rows;
  return is_mxfp4(tensor);
}

// With other bytes.
Part made(const Part& part, BlobPtr blob) {
  Part result = part;
  result.blob = std::move(blob);
  result.digest = {};
  return result;
}

bool is_stored_alike(const Tensor& tensor, const Tensor& other) {
  return tensor.layout == other.layout && std::ranges::equal(tensor.parts, other.parts, {}, &Part::dtype, &Part::dtype);
}

// Which rows: the strides between them along each axis, and the first, count rows.
struct RowPlaces {
  Shape shape;
  std::vector<std::uint64_t> strides;
  std::uint64_t first = 0;
};

// These rows, as [shape..., columns] in the shape `as`.
Tensor rows_of(const Tensor& stack, const RowPlaces& places, Shape as) {
  check_parts(stack);
  const std::uint64_t columns = stack.shape.size() == 2 ? 1 : stack.shape[2];
  const std::uint64_t rows = stack.shape[0] * stack.shape[1];
  const bool dense = stack.layout == Layout::dense;
  Tensor result = stack;
  if (stack.shape.size() > 2) as.push_back(columns);
  result.shape = std::move(as);
  result.parts.clear();
  for (const Part& part : stack.parts) {
    // Numbers one by one, so that a few of a row can be read; codes only as whole rows.
    const std::uint64_t row_bytes = rows == 0 || columns == 0 ? 1 : part.blob->size() / rows;
    const std::uint64_t item = dense ? info(part.dtype).bits / 8 : row_bytes;
    if (item > UINT32_MAX)
      throw Error(ErrorKind::unsupported, fmt::format("tensor {}: rows of {} bytes are too long", stack.name, item));
    Strided view = {.shape = places.shape,
                    .strides = {},
                    .offset = places.first * row_bytes,
                    .item_bytes = static_cast<unsigned>(item)};
    for (const std::uint64_t stride : places.strides)
      view.strides.push_back(static_cast<std::int64_t>(stride * row_bytes));
    if (dense) {
      view.shape.push_back(columns);
      view.strides.push_back(static_cast<std::int64_t>(item));
    }
    result.parts.push_back(made(part, make_strided_blob(part.blob, view)));
  }
  if (!is_mxfp4(stack)) return result;
  return make_mxfp4(stack.name, result.shape, result.parts[0].blob, result.parts[1].blob);
}

}  // namespace

Tensor dense_numbers(const Tensor& tensor) {
  if (!has_float_elements(tensor))
    throw Error(ErrorKind::invalid_file,
                fmt::format("tensor {}: it is stored as {}, expected numbers", tensor.name, storage_name(tensor)));
  return make_dense_tensor(tensor);
}

Tensor with_whole_rows(const Tensor& tensor) { return has_whole_rows(tensor) ? tensor : dense_numbers(tensor); }

Tensor every_row(const Tensor& stack, std::uint64_t matrix, std::uint64_t first, std::uint64_t step) {
  const std::uint64_t rows = stack.shape[1];
  return rows_of(stack, {{rows / step}, {step}, matrix * rows + first}, {rows / step});
}

Tensor interleaved(const Tensor& stack, std::uint64_t turns) {
  const auto [count, rows] = std::pair(stack.shape[0] / turns, stack.shape[1]);
  return rows_of(stack, {{count, rows, turns}, {turns * rows, 1, rows}}, {count, rows * turns});
}

Tensor stacked(const std::vector<Tensor>& tensors) {
  const bool alike = std::ranges::all_of(tensors, [&](const Tensor& tensor) {
    return has_whole_rows(tensor) && !is_mxfp4(tensor) && is_stored_alike(tensor, tensors.front());
  });
  if (!alike) {
    std::vector<Tensor> numbers;
    std::ranges::transform(tensors, std::back_inserter(numbers), dense_numbers);
    const bool common =
        std::ranges::all_of(numbers, [&](const Tensor& tensor) { return is_stored_alike(tensor, numbers.front()); });
    for (Tensor& tensor : numbers) {
      if (!common) tensor = make_dense(tensor.name, tensor.shape, DType::f32, dense_blob(tensor, DType::f32));
    }
    return stacked(numbers);
  }
  Tensor result = tensors.front();
  result.shape = {tensors.size()};
  for (const std::uint64_t length : tensors.front().shape) result.shape.push_back(length);
  for (std::size_t i = 0; i < result.parts.size(); ++i) {
    std::vector<BlobPtr> blobs;
    for (const Tensor& tensor : tensors) {
      check_parts(tensor);
      blobs.emplace_back(tensor.parts[i].blob);
    }
    result.parts[i] = made(result.parts[i], make_joined_blob(std::move(blobs)));
  }
  return result;
}

}  // namespace poise
