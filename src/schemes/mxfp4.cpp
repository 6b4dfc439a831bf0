#include "schemes/mxfp4.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "schemes/schemes.hpp"
#include "tensor/mx_scheme.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kBlock = 32;  // numbers that share a scale
constexpr std::array<std::string_view, 1> kParts = {kMxfp4Scales};

[[noreturn]] void fail(const Tensor& tensor, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}", tensor.name, problem));
}

void require_rank(const Tensor& tensor, std::size_t rank) {
  if (tensor.shape.size() != rank)
    fail(tensor, fmt::format("its shape is {}, expected {} dimensions", to_string(tensor.shape), rank));
}

Tensor fold(const MatrixParts& matrix, const QuantizationConfig&) {
  return joined_mx(matrix.require(kMxfp4Blocks), matrix.require(kMxfp4Scales));
}

}  // namespace

const QuantizationScheme schemes::mxfp4 = {
    .title = "MXFP4",
    .method = kMxfp4Method,
    .marker = kMxfp4Blocks,
    .parts = kParts,
    .folded = "",
    .fold = fold,
};

Tensor joined_mx(const Tensor& blocks, const Tensor& scales) {
  for (const Tensor* tensor : {&blocks, &scales}) {
    if (tensor->layout != Layout::dense || tensor->require("data").dtype != DType::u8)
      fail(*tensor, fmt::format("it is stored as {}, expected u8", storage_name(*tensor)));
  }
  require_rank(blocks, 4);
  require_rank(scales, 3);
  if (blocks.shape[3] != 16) fail(blocks, fmt::format("blocks of {} bytes, expected 16", blocks.shape[3]));
  for (std::size_t d = 0; d < 3; ++d) {
    if (blocks.shape[d] != scales.shape[d]) {
      fail(scales, fmt::format("its shape is {}, expected a scale for each block of {}, {}", to_string(scales.shape),
                               blocks.name, to_string(blocks.shape)));
    }
  }
  Tensor tensor;
  tensor.name = blocks.name.substr(0, blocks.name.size() - std::min(blocks.name.size(), kMxfp4Blocks.size()));
  tensor.shape = {blocks.shape[0], blocks.shape[1], blocks.shape[2] * kBlock};
  tensor.layout = mx_layout({.axis = 2, .block_size = kBlock});
  Part data = blocks.require("data");
  data.dtype = DType::f4_e2m1;
  Part exponents = scales.require("data");
  exponents.role = "scales";
  exponents.dtype = DType::f8_e8m0;
  tensor.parts = {std::move(data), std::move(exponents)};
  return tensor;
}

Attributes mxfp4_config() {
  return {{"modules_to_not_convert",
           Value::Array{"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}},
          {"quant_method", kMxfp4Method}};
}

}  // namespace poise
