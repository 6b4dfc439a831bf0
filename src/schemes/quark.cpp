// Reads AMD's Quark. A matrix [out, in] has these parts:
//
//   fp8            weight f8 [out, in]; weight_scale, one number or one for each row
//   fp4            weight u8 [out, in / 2], two f4_e2m1 a byte, the even one in the low half; weight_scale u8
//                  [out, in / 32], exponents (E8M0): scale_format is e8m0
//   int4, uint4    weight i32 [in, out / 8] and weight_zero_point i32 [groups, out / 8], eight codes a word: in AWQ's
//                  order, or in index order from the low bits up if pack_method is "order"; weight_scale [groups, out].
//                  Codes of int4 are signed
//
// value = number * weight_scale, or (code - zero) * weight_scale. global_quant_config describes the weights of all
// matrices, and layer_quant_config those of some, by names and patterns. Poise does not match the patterns: if the
// descriptions of integers differ, layer_quant_config must have the name of the matrix.
//
// Source: realquantizer.py and pack.py of quark.torch.
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "schemes/make_tensors.hpp"

namespace poise::schemes::quark {
namespace {

constexpr std::array<std::string_view, 2> kParts = {".weight", ".weight_zero_point"};
constexpr std::array<DType, 7> kCodes = {DType::u8,      DType::i8,          DType::i32,        DType::f8_e4m3,
                                         DType::f8_e5m2, DType::f8_e4m3fnuz, DType::f8_e5m2fnuz};
constexpr std::array<std::string_view, 1> kAlgorithms = {"Quark"};

// Describes codes of four bits in groups.
struct CodeDescription {
  bool is_signed = false;
  std::uint64_t group_size = 0;
  friend auto operator<=>(const CodeDescription&, const CodeDescription&) = default;
};

// Reads how the configuration describes a layer's codes. Returns std::nullopt if `layer` is null or does not describe
// codes of four bits in groups.
std::optional<CodeDescription> read_code_description(const Value* layer) {
  const auto* keys = layer == nullptr ? nullptr : layer->get_if<Attributes>();
  const auto* weight = get_member<Attributes>(keys, "weight");
  const auto* type = get_member<std::string>(weight, "dtype");
  const auto* size = get_member<std::uint64_t>(weight, "group_size");
  if (type == nullptr || size == nullptr || *size == 0 || (*type != "int4" && *type != "uint4")) return std::nullopt;
  return CodeDescription{*type == "int4", *size};
}

// Returns the description under the matrix's name, or else the one that all layers share. Throws invalid_file if no
// layer has a description, and unsupported if the layers have different ones.
CodeDescription find_code_description(const MatrixParts& matrix, const QuantizationConfig& config) {
  const Attributes* layers = config.find_object("layer_quant_config");
  if (layers != nullptr) {
    if (const auto own = read_code_description(layers->find(matrix.name()))) return *own;
  }
  std::set<CodeDescription> found;
  if (const auto usual = read_code_description(config.keys().find("global_quant_config"))) found.insert(*usual);
  if (layers != nullptr) {
    for (const auto& [name, layer] : *layers) {
      if (const auto codes = read_code_description(&layer)) found.insert(*codes);
    }
  }
  if (found.empty()) matrix.fail("it has codes in words, but quantization_config describes no int4 or uint4 in groups");
  if (found.size() > 1)
    throw Error(
        ErrorKind::unsupported,
        fmt::format("matrix {}: quantization_config has {} descriptions of integers, and the name of the matrix "
                    "is not in layer_quant_config",
                    matrix.name(), found.size()));
  return *found.begin();
}

Tensor fold_words(const MatrixParts& matrix, const QuantizationConfig& config) {
  const CodeDescription codes = find_code_description(matrix, config);
  const auto* order = get_member<std::string>(config.find_object("export"), "pack_method");
  if (order != nullptr && *order != "reorder" && *order != "order")
    throw Error(
        ErrorKind::unsupported,
        fmt::format("quantization_config: export: pack_method is {}, only reorder and order are supported", *order));
  return awq::fold_words(matrix, {.weight = ".weight",
                                  .scales = ".weight_scale",
                                  .zeros = ".weight_zero_point",
                                  .group_size = codes.group_size,
                                  .in_order = order != nullptr && *order == "order",
                                  .add = codes.is_signed ? 8U : 0U});
}

Tensor fold(const MatrixParts& matrix, const QuantizationConfig& config) {
  const Tensor& weight = matrix.require(".weight");
  if (const Tensor* other = matrix.find(".weight_scale_2"))
    matrix.fail(fmt::format("there is {}: NVFP4 of Quark is not supported", other->name));
  const Part* data = weight.part("data");
  if (data != nullptr && data->dtype == DType::i32) return fold_words(matrix, config);
  if (const Tensor* zeros = matrix.find(".weight_zero_point"))
    matrix.fail(fmt::format("there is {}, which only codes of four bits in words of i32 may have", zeros->name));
  if (data != nullptr && data->dtype == DType::u8) return make_packed_mxfp4_tensor(matrix, ".weight", ".weight_scale");
  return make_scaled_f8(matrix, ".weight_scale");
}

}  // namespace

const QuantizationScheme kQuark = {
    .title = "Quark",
    .method = "quark",
    .marker = ".weight_scale",
    .parts = kParts,
    .left_out = kNotOfWeights,
    .code_types = kCodes,
    .list_warnings =
        [](const Model&, const QuantizationConfig& config, std::span<const std::string> matrices) {
          return list_algorithm_warnings(config, matrices, kAlgorithms);
        },
    .fold = fold,
};

}  // namespace poise::schemes::quark
