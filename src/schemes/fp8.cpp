// Reads floating-point numbers of eight bits with scales. A matrix [out, in] has some of these parts:
//
//   weight             f8_e4m3 or f8_e5m2 [out, in]; for AMD's processors also f8_e4m3fnuz or f8_e5m2fnuz
//   weight_scale_inv   one number for each block, [out / rows, in / columns], rounded up. The key weight_block_size is
//                      [rows, columns] of a block; if it is missing, both are 128. If it is null, or if it is missing
//                      and there is one number, the shape is that of weight_scale. Numbers may be f8_e8m0 (powers of 2)
//   weight_scale       one number, or one for each row ([out, 1] or [out]); with ModelOpt's FP8_PB_WO, one for each
//                      block of 128 rows and columns ([out / 128, 1, in / 128, 1], rounded up)
//   scale_weight       one number, in ComfyUI's files
//   input_scale        how inputs are quantized, which Poise leaves out; scale_input in ComfyUI's files
//
// value = weight * scale, for all kinds of scales.
#include <array>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "patterns/glob.hpp"
#include "schemes/make_tensors.hpp"

namespace poise::schemes::fp8 {
namespace {

constexpr std::array<std::string_view, 3> kModelOptF8 = {"FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO"};
constexpr std::array<std::string_view, 1> kParts = {".weight"};
constexpr std::array<DType, 4> kCodes = {DType::f8_e4m3, DType::f8_e5m2, DType::f8_e4m3fnuz, DType::f8_e5m2fnuz};

constexpr std::uint64_t kBlock = 128;

Tensor fold_inverse(const MatrixParts& matrix, const QuantizationConfig& config) {
  constexpr std::string_view kKey = "weight_block_size";
  const F8Matrix f8(matrix, ".weight_scale_inv");
  const Value* const sides = config.keys().find(kKey);
  if (sides == nullptr ? f8.scales.elements() == 1 : *sides == Value())
    return make_scaled_f8(matrix, ".weight_scale_inv");
  const auto size = sides == nullptr ? std::array{kBlock, kBlock} : read_sides(sides, kKey);
  matrix.require_shape(f8.scales, {ceil_div(f8.weight.shape[0], size[0]), ceil_div(f8.weight.shape[1], size[1])});
  return f8.make_tensor(size[0], size[1]);
}

// Returns false if the weights are u8, as in NVFP4.
bool may_be_f8(const MatrixParts& matrix) {
  const Tensor* weight = matrix.find(".weight");
  return weight == nullptr || weight->parts.empty() || weight->parts[0].dtype != DType::u8;
}

Tensor fold_with_scales(const MatrixParts& matrix, const QuantizationConfig&) {
  return make_scaled_f8(matrix, ".weight_scale");
}

// Folds a matrix of ModelOpt. Four dimensions of weight_scale mean a scale for each block. quant_algo cannot show this,
// because with MIXED_PRECISION it does not describe single matrices.
Tensor fold_modelopt_f8(const MatrixParts& matrix, const QuantizationConfig&) {
  matrix.require(".weight");
  if (matrix.require(".weight_scale").shape.size() != 4) return make_scaled_f8(matrix, ".weight_scale");
  const F8Matrix f8(matrix, ".weight_scale", {DType::f8_e4m3});
  matrix.require_shape(f8.scales, {ceil_div(f8.weight.shape[0], kBlock), 1, ceil_div(f8.weight.shape[1], kBlock), 1});
  return f8.make_tensor(kBlock, kBlock);
}

// Makes a scheme whose matrices have the marker and kParts as their parts, and codes of the types kCodes.
constexpr QuantizationScheme make_scheme(std::string_view title, std::string_view method, std::string_view marker,
                                         Tensor (*fold)(const MatrixParts& matrix, const QuantizationConfig& config)) {
  return {.title = title,
          .method = method,
          .marker = marker,
          .parts = kParts,
          .left_out = kNotOfWeights,
          .code_types = kCodes,
          .fold = fold};
}

}  // namespace

const QuantizationScheme kInverseScales = make_scheme("fp8", "fp8", ".weight_scale_inv", fold_inverse);
const QuantizationScheme kScales = make_scheme("fp8", "fp8", ".weight_scale", fold_with_scales);
// Has a scale for each row. Source: FbgemmFp8Config of transformers.
const QuantizationScheme kFbgemm = make_scheme("FBGEMM fp8", "fbgemm_fp8", ".weight_scale", fold_with_scales);

// No quantization_config names this scheme: the tensor scaled_fp8 marks its files. Source: convert_old_quants() in
// ComfyUI's comfy/utils.py.
const QuantizationScheme kComfyUi = {
    .title = "ComfyUI scaled fp8",
    .method = "",
    .marker = ".scale_weight",
    .parts = kParts,
    .left_out = kNotOfWeights,
    .fold = [](const MatrixParts& matrix,
               const QuantizationConfig&) { return make_scaled_f8(matrix, ".scale_weight"); },
};

const QuantizationScheme kModelOpt = {
    .title = "ModelOpt fp8",
    .method = "modelopt",
    .require_known_variant = require_known_algorithm,
    .marker = ".weight_scale",
    .parts = kParts,
    .left_out = kNotOfWeights,
    .holds = may_be_f8,
    .code_types = kCodes,
    .list_warnings =
        [](const Model&, const QuantizationConfig& config, std::span<const std::string> matrices) {
          return list_algorithm_warnings(config, matrices, kModelOptF8);
        },
    .fold = fold_modelopt_f8,
};

}  // namespace poise::schemes::fp8
