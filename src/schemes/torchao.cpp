// Reads torchao's directories of safetensors files. The metadata of a file has the key X.weight for each matrix: JSON
// with its class, {"_type": "Int8Tensor", "_data": {"block_size": [1, 64], ...}, "_tensor_data_names": ["qdata", ...]}.
// The parts of X.weight are X._weight_qdata, X._weight_scale and X._weight_zero_point:
//
//   class                      qdata                    scale, zero_point                  value
//   IntxUnpackedToInt8Tensor   i8 [out, in]             [out / rows, in / columns], both   (qdata - zero_point) * scale
//   Int8Tensor                 i8 [out, in]             the same; perhaps no zero_point    the same
//   Float8Tensor               f8 [out, in]             the same, or one scale             qdata * scale
//   Int4Tensor                 i8 or u8 [out, in / 2]   [in / columns, out], both          code * scale + zero_point
//
// [rows, columns] is block_size. A byte of Int4Tensor has two signed codes, the even one in the low half. Poise folds
// it to codes that are greater by 8, with the zero points 8 - zero_point / scale. The values are the same, except for
// float32 rounding.
//
// Source: torchao/prototype/safetensors/ and torchao/quantization/quantize_/workflows/ of torchao, and pack_int4() and
// int4_row_quantize_zp() of FBGEMM, which Int4Tensor calls.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "schemes/make_tensors.hpp"
#include "views/dense.hpp"

namespace poise::schemes::torchao {
namespace {

constexpr std::string_view kCodes = "._weight_qdata";
constexpr std::string_view kScales = "._weight_scale";
constexpr std::string_view kZeros = "._weight_zero_point";
constexpr std::string_view kInputFactors = "._weight_act_pre_scale";
constexpr std::array kParts = std::to_array<std::string_view>({kScales, kZeros, kInputFactors});
constexpr std::array kOfInputs =
    std::to_array<std::string_view>({"._weight_act_quant_scale", "._weight_act_quant_zero_point"});

// Describes the blocks of elements that share a scale.
struct Blocks {
  std::uint64_t rows;
  std::uint64_t columns;
};

using FoldClass = Tensor (*)(const MatrixParts& matrix, const QuantizationConfig& data);

// Reads block_size, which has a number for each dimension. Returns std::nullopt if it is missing or empty.
std::optional<Blocks> read_blocks(const MatrixParts& matrix, const QuantizationConfig& data) {
  const Value* value = data.keys().find("block_size");
  if (value == nullptr || *value == Value() || *value == Value(Value::Array{})) return std::nullopt;
  const auto* list = value->get_if<Value::Array>();
  std::array<std::uint64_t, 2> sides = {};
  if (list != nullptr && list->size() == sides.size()) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      if (const auto* number = (*list)[i].get_if<std::uint64_t>()) sides[i] = *number;
    }
  }
  if (sides[0] == 0 || sides[1] == 0)
    matrix.fail(fmt::format("block_size is {}, expected two positive integers", shorten(to_json(*value), 60)));
  return Blocks{sides[0], sides[1]};
}

// Throws invalid_file unless the shape has elements, and the blocks divide it.
void require_whole_blocks(const MatrixParts& matrix, const Blocks& blocks, const Shape& shape) {
  if (shape[0] == 0 || shape[1] == 0) matrix.fail(fmt::format("its shape is {}: it has no elements", to_string(shape)));
  if (shape[0] % blocks.rows != 0 || shape[1] % blocks.columns != 0)
    matrix.fail(
        fmt::format("block_size [{}, {}] does not divide its shape {}", blocks.rows, blocks.columns, to_string(shape)));
}

Tensor fold_int8(const MatrixParts& matrix, const QuantizationConfig& data) {
  const Tensor& codes = matrix.require(kCodes);
  matrix.require_data(codes, {DType::i8});
  matrix.require_rank(codes, 2);
  const auto found = read_blocks(matrix, data);
  if (!found) matrix.fail("block_size is missing");
  const Blocks blocks = *found;
  require_whole_blocks(matrix, blocks, codes.shape);
  const Shape grid = {codes.shape[0] / blocks.rows, codes.shape[1] / blocks.columns};
  const Shape of_rows = {codes.shape[0], grid[1]};
  const Tensor& scales = matrix.require(kScales, kScaleTypes, grid);
  const Tensor* zeros = matrix.find(kZeros);
  if (zeros != nullptr) matrix.require(kZeros, {DType::i8, DType::f16, DType::bf16, DType::f32}, grid);
  const BlockGrid repeated = {.rows = grid[0], .columns = grid[1], .down = blocks.rows, .across = 1};
  const std::uint64_t groups = of_rows[0] * of_rows[1];
  // The layout's codes are unsigned, so zero points rise by 128.
  Part zero_part = make_part("zeros", DType::f16, zeros == nullptr ? repeat_f16(128, groups) : nullptr);
  if (zeros != nullptr) {
    zero_part = make_computed_part(matrix, "zeros", zeros->elements(), {zeros},
                                   [numbers = make_f32_numbers(*zeros)](std::uint64_t first, std::span<float> out) {
                                     numbers->read(first * sizeof(float), std::as_writable_bytes(out));
                                     for (float& number : out) number += 128;
                                   });
    zero_part.blob = repeat_blocks(zero_part.blob, zero_part.dtype, repeated, of_rows);
  }
  const Part& factors = scales.require("data");
  return make_group_tensor(matrix, {.shape = codes.shape,
                                    .bits = 8,
                                    .group_size = blocks.columns,
                                    .codes = remove_sign(codes),
                                    .scales = make_part("scales", factors.dtype,
                                                        repeat_blocks(factors.blob, factors.dtype, repeated, of_rows)),
                                    .zeros = std::move(zero_part)});
}

Tensor fold_intx(const MatrixParts& matrix, const QuantizationConfig& data) {
  matrix.require(kZeros);
  return fold_int8(matrix, data);
}

Tensor fold_float8(const MatrixParts& matrix, const QuantizationConfig& data) {
  const Tensor& numbers = matrix.require(kCodes);
  const Part& part =
      matrix.require_data(numbers, {DType::f8_e4m3, DType::f8_e5m2, DType::f8_e4m3fnuz, DType::f8_e5m2fnuz});
  matrix.require_rank(numbers, 2);
  const Tensor& scales = matrix.require(kScales);
  matrix.require_data(scales, kScaleTypes);
  if (const Tensor* zeros = matrix.find(kZeros))
    matrix.fail(fmt::format("there is {}, but floating-point numbers have no zero point", zeros->name));
  const Blocks blocks = read_blocks(matrix, data).value_or(Blocks{numbers.shape[0], numbers.shape[1]});
  require_whole_blocks(matrix, blocks, numbers.shape);
  const Shape grid = {numbers.shape[0] / blocks.rows, numbers.shape[1] / blocks.columns};
  if (scales.elements() != 1 || grid != Shape{1, 1}) matrix.require_shape(scales, grid);
  return make_block_scaled_tensor(numbers.shape, part.dtype, part.blob, cast_to_f32(scales), blocks.rows,
                                  blocks.columns);
}

Tensor fold_int4(const MatrixParts& matrix, const QuantizationConfig& data) {
  const Tensor& bytes = matrix.require(kCodes);
  const Part& codes = matrix.require_data(bytes, {DType::i8, DType::u8});
  matrix.require_rank(bytes, 2);
  if (bytes.shape[1] > UINT32_MAX)
    matrix.fail(fmt::format("{} has {} columns, at most {} are supported", bytes.name, bytes.shape[1], UINT32_MAX));
  const Shape shape = {bytes.shape[0], bytes.shape[1] * 2};
  const auto found = read_blocks(matrix, data);
  if (!found) matrix.fail("block_size is missing");
  if (found->rows != 1) matrix.fail(fmt::format("block_size begins with {}, expected 1", found->rows));
  require_whole_blocks(matrix, *found, shape);
  const Shape grid = {shape[1] / found->columns, shape[0]};
  const Tensor& scales = matrix.require(kScales, kScaleTypes, grid);
  const Tensor& zeros = matrix.require(kZeros, kScaleTypes, grid);
  const auto transpose_numbers = [&](const Tensor& tensor) {
    return transpose_data(make_dense(tensor.name, grid, DType::f32, cast_to_f32(tensor)));
  };
  const std::string name = matrix.name();
  const auto compute_zeros = [=, dividends = transpose_numbers(zeros), divisors = transpose_numbers(scales)](
                                 std::uint64_t first, std::span<float> out) {
    std::vector<float> scale(out.size());
    dividends->read(first * sizeof(float), std::as_writable_bytes(out));
    divisors->read(first * sizeof(float), std::as_writable_bytes(std::span(scale)));
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (scale[i] == 0 && out[i] != 0)
        throw Error(ErrorKind::unsupported,
                    fmt::format("matrix {}: torchao: group {} has the scale 0 and the zero point {}, which no zero "
                                "point of a code can express",
                                name, first + i, out[i]));
      out[i] = scale[i] == 0 ? 8.0F : 8 - out[i] / scale[i];
    }
  };
  return make_group_tensor(
      matrix,
      {.shape = shape,
       .bits = 4,
       .group_size = found->columns,
       .codes = make_codes_blob({.words = codes.blob, .rows = shape[0], .columns = shape[1], .bits = 4, .add = 8},
                                MatrixOrder::same, 4),
       .scales = make_part("scales", scales.require("data").dtype, transpose_data(scales)),
       .zeros = make_computed_part(matrix, "zeros", scales.elements(), {&scales, &zeros}, compute_zeros)});
}

struct TensorClass {
  std::string_view name;
  FoldClass fold;
};
constexpr std::array kClasses = std::to_array<TensorClass>({{"Float8Tensor", fold_float8},
                                                            {"Int4Tensor", fold_int4},
                                                            {"Int8Tensor", fold_int8},
                                                            {"IntxUnpackedToInt8Tensor", fold_intx}});

// Returns how to fold a matrix of that class. Throws unsupported for a class without a row, and for a matrix whose
// inputs are multiplied by act_pre_scale.
FoldClass find_fold(const MatrixParts& matrix, const std::string& name) {
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::unsupported, fmt::format("matrix {}: torchao: {}", matrix.name(), problem));
  };
  const auto* row = std::ranges::find(kClasses, name, &TensorClass::name);
  if (row == kClasses.end()) {
    std::vector<std::string_view> names;
    for (const TensorClass& known : kClasses) names.push_back(known.name);
    refuse(
        fmt::format("its class is {}, only {} are supported; save the model with one of these classes, or "
                    "dequantize it in torchao",
                    shorten(name, 60), fmt::join(names, ", ")));
  }
  if (matrix.find(kInputFactors) != nullptr)
    refuse("its inputs are multiplied by act_pre_scale, which is not supported; dequantize it in torchao");
  return row->fold;
}

Tensor fold(const MatrixParts& matrix, const QuantizationConfig&) {
  const std::string key = matrix.name() + ".weight";
  const std::string* text = matrix.find_text(key);
  if (text == nullptr)
    matrix.fail(fmt::format("the metadata of its file lacks \"{}\", which describes the parts", key));
  const auto description = [&] {
    try {
      return parse_json(*text, {});
    } catch (const Error& error) {
      matrix.fail(fmt::format("\"{}\" in the metadata of its file: {}", key, error.message()));
    }
  }();
  const auto* keys = description.get_if<Attributes>();
  const auto* name = get_member<std::string>(keys, "_type");
  const auto* data = get_member<Attributes>(keys, "_data");
  if (name == nullptr || (data == nullptr && *name != "Tensor"))
    matrix.fail(fmt::format("\"{}\" in the metadata of its file: expected an object with _type and _data", key));
  const FoldClass fold_class = find_fold(matrix, *name);
  return fold_class(matrix, QuantizationConfig(*data));
}

// Implements QuantizationScheme::describes_tensors. tensor_names lists all tensors, and each other entry describes one.
bool describes_tensors(std::string_view key, const Value& value) {
  const auto* text = value.get_if<std::string>();
  return key == "tensor_names" || (text != nullptr && text->starts_with("{\"_type\""));
}

}  // namespace

const QuantizationScheme kTorchao = {
    .title = "torchao",
    .method = "torchao",
    .marker = kCodes,
    .parts = kParts,
    .left_out = kOfInputs,
    .describes_tensors = describes_tensors,
    .fold = fold,
};

}  // namespace poise::schemes::torchao
