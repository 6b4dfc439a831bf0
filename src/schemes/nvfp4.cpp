// Reads NVFP4 with the names of ModelOpt, or of compressed-tensors and AutoRound. A matrix [out, in] has these parts:
//
//   ModelOpt             compressed-tensors
//   weight               weight_packed           u8 [out, in / 2], two f4_e2m1 a byte, the even one in the low half
//   weight_scale         weight_scale            f8_e4m3 [out, in / 16]
//   weight_scale_2       weight_global_scale     f32, one number: a factor, or a divisor
//   input_scale          input_global_scale      how inputs are quantized, which Poise leaves out
//
// value = number * scale, where scale is weight_scale * weight_scale_2, or weight_scale / weight_global_scale.
#include <cmath>

#include <fmt/format.h>

#include "schemes/make_tensors.hpp"
#include "views/dense.hpp"

namespace poise::schemes::nvfp4 {
namespace {

constexpr std::uint64_t kGroup = 16;
constexpr std::array<std::string_view, 2> kModelOptParts = {".weight", ".weight_scale"};
constexpr std::array<std::string_view, 2> kAlgorithms = {"NVFP4", "W4A16_NVFP4"};
constexpr std::array<DType, 1> kModelOptCodes = {DType::u8};
constexpr std::array<std::string_view, 2> kCompressedParts = {".weight_packed", ".weight_scale"};

// Folds weight_scale and the parts with the endings `weight` and `factor`. The factor divides the scales if `divides`
// is true, and otherwise multiplies them. Throws invalid_file (without path) for parts that are missing or do not fit,
// for a factor that is not finite, and for a divisor of 0.
Tensor fold_parts(const MatrixParts& matrix, std::string_view weight, std::string_view factor, bool divides) {
  const Tensor& codes = matrix.require(weight);
  const Part& data = matrix.require_data(codes, {DType::u8});
  matrix.require_rank(codes, 2);
  const std::uint64_t columns = codes.shape[1] * 2;
  if (columns % kGroup != 0) matrix.fail(fmt::format("groups of {} do not divide its {} columns", kGroup, columns));
  const Tensor& scales = matrix.require(".weight_scale", {DType::f8_e4m3}, {codes.shape[0], columns / kGroup});
  const Tensor& global = matrix.require(factor);
  matrix.require_data(global, {DType::f32});
  if (global.elements() != 1)
    matrix.fail(fmt::format("the shape of {} is {}, expected one number", global.name, to_string(global.shape)));
  const float number = read_scalar(global);
  if (!std::isfinite(number) || (divides && number == 0))
    matrix.fail(fmt::format("{} is {}, which is not a scale", global.name, number));
  const BlobPtr small = scales.require("data").blob;
  const Part product = make_computed_part(matrix, "scales", scales.elements(), {&scales},
                                          [small, number, divides](std::uint64_t first, std::span<float> out) {
                                            std::vector<std::byte> bytes(out.size());
                                            small->read(first, bytes);
                                            widen(DType::f8_e4m3, bytes.data(), out);
                                            for (float& scale : out) scale = divides ? scale / number : scale * number;
                                          });
  return make_block_scaled_tensor({codes.shape[0], columns}, DType::f4_e2m1, data.blob, product.blob, 1, kGroup);
}

Tensor fold_modelopt(const MatrixParts& matrix, const QuantizationConfig&) {
  return fold_parts(matrix, ".weight", ".weight_scale_2", false);
}

Tensor fold_compressed(const MatrixParts& matrix, const QuantizationConfig& config) {
  compressed_tensors::require_format(matrix, config, "nvfp4-pack-quantized");
  return fold_parts(matrix, ".weight_packed", ".weight_global_scale", true);
}

constexpr QuantizationScheme make_compressed_scheme(std::string_view title, std::string_view method) {
  return {.title = title,
          .method = method,
          .marker = ".weight_global_scale",
          .parts = kCompressedParts,
          .left_out = kNotOfWeights,
          .list_warnings = compressed_tensors::list_name_warnings,
          .fold = fold_compressed};
}

}  // namespace

const QuantizationScheme kModelOpt = {
    .title = "ModelOpt NVFP4",
    .method = "modelopt",
    .require_known_variant = require_known_algorithm,
    .marker = ".weight_scale_2",
    .parts = kModelOptParts,
    .left_out = kNotOfWeights,
    .code_types = kModelOptCodes,
    .list_warnings =
        [](const Model&, const QuantizationConfig& config, std::span<const std::string> matrices) {
          return list_algorithm_warnings(config, matrices, kAlgorithms);
        },
    .fold = fold_modelopt,
};

const QuantizationScheme kCompressed =
    make_compressed_scheme("compressed-tensors nvfp4-pack-quantized", "compressed-tensors");
const QuantizationScheme kAutoRound = make_compressed_scheme("AutoRound NVFP4", poise::kAutoRound);

}  // namespace poise::schemes::nvfp4
