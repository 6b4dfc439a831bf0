// Reads and writes MXFP4, as published directories of gpt-oss store their experts. A stack X [experts, rows, columns]
// has these parts:
//
//   X_blocks   u8 [experts, rows, columns / 32, 16], two codes (f4_e2m1) a byte, the even one in the low half
//   X_scales   u8 [experts, rows, columns / 32], the scale of each block, as an exponent (E8M0)
//
// The folded tensor X has the layout zt.mx/1 with the same bytes.
#include "schemes/scheme.hpp"

#include <array>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "bytes/checked.hpp"
#include "views/dense.hpp"
#include "views/mx.hpp"

namespace poise::schemes::mxfp4 {
namespace {

constexpr std::string_view kBlocks = "_blocks";
constexpr std::string_view kScales = "_scales";
constexpr std::array<std::string_view, 1> kParts = {kScales};
constexpr std::uint64_t kBlockCodes = 16;  // bytes that hold the 32 codes of a block

Tensor fold(const MatrixParts& matrix, const QuantizationConfig&) {
  const Tensor& blocks = matrix.require(kBlocks);
  const Tensor& scales = matrix.require(kScales);
  const Part& codes = matrix.require_data(blocks, {DType::u8});
  const Part& exponents = matrix.require_data(scales, {DType::u8});
  matrix.require_rank(blocks, 4);
  if (blocks.shape[3] != kBlockCodes)
    matrix.fail(fmt::format("{} has blocks of {} bytes, expected {}", blocks.name, blocks.shape[3], kBlockCodes));
  matrix.require_shape(scales, {blocks.shape[0], blocks.shape[1], blocks.shape[2]});
  const auto columns = checked_mul(blocks.shape[2], kMxfp4Block);
  if (!columns)
    matrix.fail(fmt::format("the shape of {} is {}: the number of its columns does not fit 64 bits", blocks.name,
                            to_string(blocks.shape)));
  Tensor tensor = make_mxfp4(matrix.name(), {blocks.shape[0], blocks.shape[1], *columns}, codes.blob, exponents.blob);
  tensor.parts[0].digest = codes.digest;
  tensor.parts[1].digest = exponents.digest;
  return tensor;
}

std::vector<Tensor> unfold(const Tensor& matrix) {
  if (!is_mxfp4(matrix) || matrix.shape.size() != 3) return {};
  const auto make_part_tensor = [&](std::string_view ending, Shape shape, std::string_view role) {
    Tensor tensor =
        make_dense(matrix.name + std::string(ending), std::move(shape), DType::u8, BlobPtr(matrix.require(role).blob));
    tensor.parts[0].digest = matrix.require(role).digest;
    return tensor;
  };
  const auto [experts, rows, groups] = std::tuple(matrix.shape[0], matrix.shape[1], matrix.shape[2] / kMxfp4Block);
  return {make_part_tensor(kBlocks, {experts, rows, groups, kBlockCodes}, "data"),
          make_part_tensor(kScales, {experts, rows, groups}, "scales")};
}

}  // namespace

const QuantizationScheme kMxfp4 = {
    .title = "MXFP4",
    .method = "mxfp4",
    .marker = kBlocks,
    .parts = kParts,
    .folded = "",
    .fold = fold,
    .unfold = unfold,
    .usual_config = make_mxfp4_config,
};

}  // namespace poise::schemes::mxfp4

namespace poise {

Attributes make_mxfp4_config() {
  return {{"modules_to_not_convert",
           Value::Array{"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}},
          {"quant_method", schemes::mxfp4::kMxfp4.method}};
}

}  // namespace poise
