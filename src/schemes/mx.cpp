// Reads MX numbers as compressed-tensors and AutoRound store them. A matrix [out, in] has these parts:
//
//   mxfp4-pack-quantized   weight_packed u8 [out, in / 2], two f4_e2m1 a byte, the even one in the low half
//   mxfp8-quantized        weight f8_e4m3 [out, in]
//   both                   weight_scale u8 or f8_e8m0 [out, in / 32], an exponent (E8M0) for 32 neighbours
//
// value = number * 2^(exponent - 127). Source: MXFP4PackedCompressor and MXFP8QuantizationCompressor of
// compressed-tensors.
#include <algorithm>
#include <array>

#include "schemes/make_tensors.hpp"

namespace poise::schemes::mx {
namespace {

constexpr std::array<std::string_view, 1> k4BitParts = {".weight_scale"};
constexpr std::array<std::string_view, 1> k8BitParts = {".weight"};
constexpr std::array<DType, 1> k8BitCodes = {DType::f8_e4m3};

bool has_type(const Tensor* tensor, std::initializer_list<DType> types) {
  return tensor != nullptr && tensor->parts.size() == 1 &&
         std::ranges::find(types, tensor->parts[0].dtype) != types.end();
}

// Returns true for MX numbers of 4 bits. NVFP4 also has u8 in weight_packed, but has weight_global_scale, and scales of
// f8_e4m3.
bool holds_4_bits(const MatrixParts& matrix) {
  return has_type(matrix.find(".weight_packed"), {DType::u8}) && matrix.find(".weight_global_scale") == nullptr &&
         !has_type(matrix.find(".weight_scale"), {DType::f8_e4m3});
}

bool holds_8_bits(const MatrixParts& matrix) {
  return has_type(matrix.find(".weight_scale"), {DType::u8, DType::f8_e8m0}) &&
         matrix.find(".weight_packed") == nullptr;
}

Tensor fold_4_bits(const MatrixParts& matrix, const QuantizationConfig& config) {
  compressed_tensors::require_format(matrix, config, "mxfp4-pack-quantized");
  return make_packed_mxfp4_tensor(matrix, ".weight_packed", ".weight_scale");
}

Tensor fold_8_bits(const MatrixParts& matrix, const QuantizationConfig& config) {
  const Tensor& weight = matrix.require(".weight");
  compressed_tensors::require_format(matrix, config, "mxfp8-quantized");
  const Part& data = matrix.require_data(weight, {DType::f8_e4m3});
  matrix.require_rank(weight, 2);
  return make_mx_tensor(matrix, weight.shape, data, matrix.require(".weight_scale"));
}

constexpr QuantizationScheme make_4_bit_scheme(std::string_view title, std::string_view method) {
  return {.title = title,
          .method = method,
          .marker = ".weight_packed",
          .parts = k4BitParts,
          .left_out = kNotOfWeights,
          .holds = holds_4_bits,
          .list_warnings = compressed_tensors::list_name_warnings,
          .fold = fold_4_bits};
}

constexpr QuantizationScheme make_8_bit_scheme(std::string_view title, std::string_view method) {
  return {.title = title,
          .method = method,
          .marker = ".weight_scale",
          .parts = k8BitParts,
          .left_out = kNotOfWeights,
          .holds = holds_8_bits,
          .code_types = k8BitCodes,
          .list_warnings = compressed_tensors::list_name_warnings,
          .fold = fold_8_bits};
}

}  // namespace

const QuantizationScheme kCompressed4Bit =
    make_4_bit_scheme("compressed-tensors mxfp4-pack-quantized", "compressed-tensors");
const QuantizationScheme kCompressed8Bit =
    make_8_bit_scheme("compressed-tensors mxfp8-quantized", "compressed-tensors");
const QuantizationScheme kAutoRound4Bit = make_4_bit_scheme("AutoRound MXFP4", kAutoRound);
const QuantizationScheme kAutoRound8Bit = make_8_bit_scheme("AutoRound MXFP8", kAutoRound);

}  // namespace poise::schemes::mx
