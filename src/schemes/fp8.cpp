// Numbers of eight bits with scales, of a matrix [out, in]:
//
//   weight             f8_e4m3 or f8_e5m2 [out, in]; on processors by AMD f8_e4m3fnuz or f8_e5m2fnuz
//   weight_scale_inv   [out / block, in / block], rounded up; blocks as weight_block_size has them, of 128 if that key
//                      is missing. If it is null, as weight_scale. Also powers of two (f8_e8m0)
//   weight_scale       one number, or one a row ([out, 1] or [out]); ModelOpt's FP8_PB_WO: one for each block of 128
//                      rows and columns, [out / 128, 1, in / 128, 1], rounded up
//   scale_weight       one number, in ComfyUI's files
//   input_scale        how inputs are quantized; scale_input in ComfyUI's files
//
// value = weight * scale, with each kind of scale.
#include <algorithm>
#include <array>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "patterns/glob.hpp"
#include "schemes/make_tensors.hpp"
#include "schemes/scheme.hpp"

namespace poise::schemes {
namespace {

constexpr std::string_view kMixed = "MIXED_PRECISION";
constexpr std::array<std::string_view, 3> kModelOptF8 = {"FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO"};
constexpr std::array<std::string_view, 1> kParts = {".weight"};
constexpr std::array<DType, 4> kCodes = {DType::f8_e4m3, DType::f8_e5m2, DType::f8_e4m3fnuz, DType::f8_e5m2fnuz};

constexpr std::uint64_t kBlock = 128;

Tensor fold_inverse(const MatrixParts& matrix, const QuantizationConfig& config) {
  constexpr std::string_view kKey = "weight_block_size";
  const F8Matrix f8(matrix, ".weight_scale_inv");
  const Value* const sides = config.keys().find(kKey);
  if (sides == nullptr ? f8.scales.elements() == 1 : *sides == Value()) return scaled_f8(matrix, ".weight_scale_inv");
  const auto size = sides == nullptr ? std::array{kBlock, kBlock} : block_sides(sides, kKey);
  matrix.require_shape(f8.scales, {ceil_div(f8.weight.shape[0], size[0]), ceil_div(f8.weight.shape[1], size[1])});
  return f8.scaled(size[0], size[1]);
}

// NVFP4 has bytes instead.
bool is_wide(const MatrixParts& matrix) {
  const Tensor* weight = matrix.find(".weight");
  return weight == nullptr || weight->parts.empty() || weight->parts[0].dtype != DType::u8;
}

Tensor fold_scaled(const MatrixParts& matrix, const QuantizationConfig&) { return scaled_f8(matrix, ".weight_scale"); }

// The algorithm may be that of another matrix (MIXED_PRECISION): the shape of the scales tells blocks.
Tensor fold_modelopt_f8(const MatrixParts& matrix, const QuantizationConfig&) {
  matrix.require(".weight");
  if (matrix.require(".weight_scale").shape.size() != 4) return scaled_f8(matrix, ".weight_scale");
  const F8Matrix f8(matrix, ".weight_scale", {DType::f8_e4m3});
  matrix.require_shape(f8.scales, {ceil_div(f8.weight.shape[0], kBlock), 1, ceil_div(f8.weight.shape[1], kBlock), 1});
  return f8.scaled(kBlock, kBlock);
}

}  // namespace

std::string left_out_warning(std::string_view first, std::size_t count) {
  return fmt::format(
      "tensor {}{} is left out: it scales what matrices are multiplied with, which Poise does not quantize", first,
      and_more(count - 1));
}

void require_known_algorithm(const QuantizationConfig& config) {
  constexpr std::array<std::string_view, 6> kKnown = {
      "FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4", "W4A16_NVFP4", kMixed};
  const auto algorithm = config.text("quant_algo");
  if (algorithm && std::ranges::find(kKnown, *algorithm) == kKnown.end())
    throw Error(ErrorKind::unsupported, fmt::format("quantization_config: quant_algo is {}, only {} are supported",
                                                    *algorithm, fmt::join(kKnown, ", ")));
}

namespace {

// The modules that a list names, as they are or by shell patterns.
class ListedModules {
 public:
  explicit ListedModules(const Value::Array& list) {
    for (const Value& item : list) {
      const auto* text = item.get_if<std::string>();
      if (text == nullptr) continue;
      if (text->find_first_of("*?[") == std::string::npos) {
        names_.insert(*text);
      } else {
        patterns_.push_back(*text);
      }
    }
  }

  // At worst each byte of a pattern is compared with each one of a name.
  bool takes_long(std::span<const std::string> modules) const {
    constexpr std::uint64_t kMostComparisons = 10'000'000;
    constexpr std::uint64_t kMostBytes = 2'000'000'000;
    std::uint64_t pattern_bytes = 0;
    for (const std::string_view pattern : patterns_) pattern_bytes += pattern.size();
    std::uint64_t name_bytes = 0;
    for (const std::string& module : modules) name_bytes += module.size();
    return !patterns_.empty() &&
           (modules.size() > kMostComparisons / patterns_.size() || name_bytes > kMostBytes / pattern_bytes);
  }

  bool contains(const std::string& module) const {
    return names_.contains(module) ||
           std::ranges::any_of(patterns_, [&](std::string_view pattern) { return glob_matches(pattern, module); });
  }

 private:
  std::unordered_set<std::string_view> names_;
  std::vector<std::string_view> patterns_;
};

}  // namespace

std::vector<std::string> doubts_of_algorithm(const QuantizationConfig& config, std::span<const std::string> matrices,
                                             std::span<const std::string_view> algorithms) {
  std::vector<std::string> doubts;
  const auto algorithm = config.text("quant_algo");
  if (algorithm && *algorithm != kMixed && std::ranges::find(algorithms, *algorithm) == algorithms.end())
    doubts.push_back(fmt::format(
        "quant_algo is {}, but matrix {}{} is stored as {}: its parts count", *algorithm, matrices.front(),
        matrices.size() == 1 ? "" : fmt::format(", with {} more,", matrices.size() - 1), algorithms.front()));
  for (const std::string_view key : {"exclude_modules", "ignore"}) {
    const Value* value = config.keys().find(key);
    const auto* patterns = value == nullptr ? nullptr : value->get_if<Value::Array>();
    if (patterns == nullptr) continue;
    const ListedModules listed(*patterns);
    if (listed.takes_long(matrices)) {
      doubts.push_back(fmt::format("{} has too many patterns to compare with {} matrices", key, matrices.size()));
      continue;
    }
    const std::string* first = nullptr;
    std::size_t count = 0;
    for (const std::string& matrix : matrices) {
      if (!listed.contains(matrix)) continue;
      first = first == nullptr ? &matrix : first;
      ++count;
    }
    if (first == nullptr) continue;
    doubts.push_back(
        fmt::format("{} lists matrix {}{} as not quantized, but there are scales next to its codes: its "
                    "parts count",
                    key, *first, and_more(count - 1)));
  }
  return doubts;
}

F8Matrix::F8Matrix(const MatrixParts& matrix, std::string_view scales_ending, std::initializer_list<DType> types)
    : weight(matrix.require(".weight")), data(matrix.data(weight, types)), scales(matrix.require(scales_ending)) {
  matrix.require_rank(weight, 2);
  matrix.data(scales, {DType::f32, DType::bf16, DType::f16, DType::f8_e8m0});
}

Tensor F8Matrix::scaled(std::uint64_t rows, std::uint64_t columns) const {
  return block_scaled_tensor(weight.shape, data.dtype, data.blob, as_f32(scales), rows, columns);
}

Tensor scaled_f8(const MatrixParts& matrix, std::string_view scales_ending) {
  const F8Matrix f8(matrix, scales_ending);
  const std::uint64_t rows = f8.weight.shape[0];
  const std::uint64_t columns = f8.weight.shape[1];
  const Shape& shape = f8.scales.shape;
  const bool each_row = shape == Shape{rows, 1} || (shape == Shape{rows} && rows != 1);
  if (!each_row && f8.scales.elements() != 1)
    matrix.fail(fmt::format("the shape of {} is {}, expected one number, or one for each of {} rows", f8.scales.name,
                            to_string(shape), rows));
  if (rows == 0 || columns == 0) matrix.fail(fmt::format("{} has no elements", f8.weight.name));
  return f8.scaled(each_row ? 1 : rows, columns);
}

const QuantizationScheme fp8_inverse = {
    .title = "fp8",
    .method = "fp8",
    .marker = ".weight_scale_inv",
    .parts = kParts,
    .left_out = kNotOfWeights,
    .code_types = kCodes,
    .fold = fold_inverse,
};

const QuantizationScheme fp8_tensors = {
    .title = "fp8",
    .method = "fp8",
    .marker = ".weight_scale",
    .parts = kParts,
    .left_out = kNotOfWeights,
    .code_types = kCodes,
    .fold = fold_scaled,
};

// transformers' FbgemmFp8Config: a scale for each row.
const QuantizationScheme fbgemm_fp8 = {
    .title = "FBGEMM fp8",
    .method = "fbgemm_fp8",
    .marker = ".weight_scale",
    .parts = kParts,
    .left_out = kNotOfWeights,
    .code_types = kCodes,
    .fold = fold_scaled,
};

// ComfyUI's, which no quantization_config describes. Source: convert_old_quants() in comfy/utils.py.
const QuantizationScheme scaled_fp8 = {
    .title = "ComfyUI scaled fp8",
    .method = "",
    .marker = ".scale_weight",
    .parts = kParts,
    .left_out = kNotOfWeights,
    .fold = [](const MatrixParts& matrix, const QuantizationConfig&) { return scaled_f8(matrix, ".scale_weight"); },
};

const QuantizationScheme modelopt_fp8 = {
    .title = "ModelOpt fp8",
    .method = "modelopt",
    .require_known = require_known_algorithm,
    .marker = ".weight_scale",
    .parts = kParts,
    .left_out = kNotOfWeights,
    .holds = is_wide,
    .code_types = kCodes,
    .doubts = [](const Model&, const QuantizationConfig& config,
                 std::span<const std::string> matrices) { return doubts_of_algorithm(config, matrices, kModelOptF8); },
    .fold = fold_modelopt_f8,
};

}  // namespace poise::schemes
