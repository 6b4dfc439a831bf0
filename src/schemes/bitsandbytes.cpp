// Reads bitsandbytes. A matrix with n elements in row-major order has these parts:
//
//   4 bits   weight u8 [n / 2, 1], rounded up: two codes a byte, the even one in the high half; or the same bytes as
//            numbers of another type (bnb_4bit_quant_storage)
//            weight.quant_map f32 [16], the number that each code means
//            weight.absmax f32, a scale for each block of blocksize elements; or u8, a code for each scale
//            weight.nested_quant_map f32 [256], if scales are codes: the number that each of these codes means
//            weight.nested_absmax f32, if scales are codes: a scale for each block of nested_blocksize scales
//            weight.quant_state.bitsandbytes__nf4 or __fp4, JSON: shape, blocksize, nested_blocksize, nested_offset,
//            quant_type
//   8 bits   weight i8 [out, in]; SCB f32 [out]; perhaps weight_format u8, one number: 0 means row-major order
//
// With 4 bits, value = quant_map[code] * scale. The scale is absmax, or, if scales are codes,
// nested_quant_map[absmax] * nested_absmax + nested_offset. With 8 bits, value = code * SCB / 127.
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/little_endian.hpp"
#include "bytes/short_text.hpp"
#include "schemes/make_tensors.hpp"
#include "syntax/element_value.hpp"
#include "views/computed_blob.hpp"
#include "views/groups.hpp"
#include "views/layout_type.hpp"

namespace poise::schemes::bitsandbytes {
namespace {

constexpr std::string_view kMethod = "bitsandbytes";
constexpr std::uint64_t kMaxStateBytes = 1 << 16;
constexpr std::array<std::string_view, 2> kStates = {".weight.quant_state.bitsandbytes__nf4",
                                                     ".weight.quant_state.bitsandbytes__fp4"};
constexpr std::array<std::string_view, 6> kParts4 = {".weight",  ".weight.absmax",        kStates[0],
                                                     kStates[1], ".weight.nested_absmax", ".weight.nested_quant_map"};
constexpr std::array<std::string_view, 2> kParts8 = {".weight", ".weight_format"};
constexpr std::array<DType, 1> kCodes4 = {DType::u8};
constexpr std::array<DType, 1> kCodes8 = {DType::i8};
// The place of each of the two codes in a byte: the even one is in the high half.
constexpr std::array<std::uint8_t, 2> kPlaces = {1, 0};

// Reads the JSON object of a matrix (quant_state).
class State {
 public:
  // Returns quant_type, or else the type in the tensor's name, as bitsandbytes does.
  std::string read_type() const {
    const auto* text = keys_.get_if<std::string>("quant_type");
    return text != nullptr ? *text : tensor_->name.ends_with(kStates[0]) ? "nf4" : "fp4";
  }

  explicit State(const MatrixParts& matrix) : matrix_(matrix) {
    for (const std::string_view name : kStates) {
      if (matrix.find(name) == nullptr) continue;
      if (tensor_ != nullptr)
        matrix.fail(fmt::format("expected one state, found {} and {}", tensor_->name, matrix.find(name)->name));
      tensor_ = matrix.find(name);
    }
    if (tensor_ == nullptr) matrix.fail(fmt::format("the part {}{} is missing", matrix.name(), kStates[0]));
    const Part& data = matrix.require_data(*tensor_, {DType::u8});
    if (data.blob->size() > kMaxStateBytes)
      matrix.fail(
          fmt::format("{} has {} bytes, expected at most {}", tensor_->name, data.blob->size(), kMaxStateBytes));
    std::string text(static_cast<std::size_t>(data.blob->size()), '\0');
    data.blob->read(0, std::as_writable_bytes(std::span(text)));
    try {
      Value value = parse_json(text, std::string(tensor_->name));
      if (value.get_if<Attributes>() != nullptr) keys_ = std::move(value).take<Attributes>();
    } catch (const Error& error) {
      fail(error.message());
    }
    if (keys_.empty()) fail("expected a JSON object");
  }

  std::uint64_t read_positive(std::string_view key) const {
    const auto* number = keys_.get_if<std::uint64_t>(key);
    if (number == nullptr || *number == 0) fail(fmt::format("{}: expected a positive integer", key));
    return *number;
  }
  float read_finite(std::string_view key) const {
    const auto found = convert_to_double(keys_.find(key));
    if (!found || !std::isfinite(static_cast<float>(*found)))
      fail(fmt::format("{}: expected a number that fits float32", key));
    return static_cast<float>(*found);
  }
  Shape read_shape() const {
    const auto* array = keys_.get_if<Value::Array>("shape");
    if (array == nullptr || array->empty() || array->size() > 8) fail("shape: expected an array of integers");
    Shape shape;
    for (const Value& length : *array) {
      const auto* number = length.get_if<std::uint64_t>();
      if (number == nullptr) fail("shape: expected an array of integers");
      shape.push_back(*number);
    }
    if (!element_count(shape)) fail(fmt::format("shape: {} overflows 64 bits", to_string(shape)));
    return shape;
  }

 private:
  [[noreturn]] void fail(std::string_view problem) const {
    matrix_.fail(fmt::format("{}: {}", tensor_->name, problem));
  }

  const MatrixParts& matrix_;
  const Tensor* tensor_ = nullptr;
  Attributes keys_;
};

// Makes the part `scales` from `count` scales that are stored as codes with scales of their own.
Part decode_nested_scales(const MatrixParts& matrix, const State& state, const Part& codes, std::uint64_t count) {
  const Tensor& book = matrix.require(".weight.nested_quant_map", {DType::f32}, {256});
  const std::uint64_t block = state.read_positive("nested_blocksize");
  const Tensor& scales = matrix.require(".weight.nested_absmax", {DType::f32}, {ceil_div(count, block)});
  const float offset = state.read_finite("nested_offset");
  const BlobPtr small = codes.blob;
  const BlobPtr codebook = book.require("data").blob;
  const BlobPtr outer = scales.require("data").blob;
  return make_computed_part(matrix, "scales", count, {&book, &scales}, [=](std::uint64_t first, std::span<float> out) {
    std::vector<std::byte> bytes(out.size());
    small->read(first, bytes);
    const LoadedBlob table(codebook);
    const LoadedBlob multiplied(outer);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] =
          table.at<float>(std::to_integer<std::size_t>(bytes[i])) * multiplied.at<float>((first + i) / block) + offset;
    }
  });
}

Tensor fold_4bit(const MatrixParts& matrix, const QuantizationConfig&) {
  const State state(matrix);
  const Shape shape = state.read_shape();
  const std::uint64_t count = *element_count(shape);
  const Tensor& weight = matrix.require(".weight");
  const Part& codes =
      matrix.require_data(weight, {DType::u8, DType::i8, DType::bf16, DType::f16, DType::f32, DType::f64});
  if (codes.blob->size() != count / 2 + count % 2)
    matrix.fail(fmt::format("{} has {} bytes, expected {} for shape {}", weight.name, codes.blob->size(),
                            count / 2 + count % 2, to_string(shape)));
  const Tensor& book = matrix.require(".weight.quant_map", {DType::f32}, {16});
  const std::uint64_t block = state.read_positive("blocksize");
  const Tensor& absmax = matrix.require(".weight.absmax", {DType::f32, DType::u8}, {ceil_div(count, block)});
  const Part& scales = absmax.require("data");
  Tensor tensor;
  tensor.name = matrix.name();
  tensor.shape = shape;
  tensor.attributes = make_codebook_attributes(block);
  tensor.parts.push_back(make_part(
      "data", DType::u8,
      make_codes_blob({.words = codes.blob, .rows = 1, .columns = 2 * codes.blob->size(), .bits = 4, .order = kPlaces},
                      MatrixOrder::same, 4)));
  tensor.parts.push_back(make_part("codebook", book.require("data")));
  tensor.parts.push_back(scales.dtype == DType::f32 ? make_part("scales", scales)
                                                    : decode_nested_scales(matrix, state, scales, absmax.elements()));
  tensor.layout = make_codebook_layout(block);
  check_parts(tensor);
  return tensor;
}

Tensor fold_8bit(const MatrixParts& matrix, const QuantizationConfig&) {
  constexpr float kLargest = 127;
  const Tensor& weight = matrix.require(".weight");
  matrix.require_data(weight, {DType::i8});
  matrix.require_rank(weight, 2);
  const Tensor& largest = matrix.require(".SCB", {DType::f32}, {weight.shape[0]});
  if (const Tensor* format = matrix.find(".weight_format")) {
    std::uint8_t order = 0;
    if (matrix.require_data(*format, {DType::u8}).blob->size() != 1)
      matrix.fail(fmt::format("{}: expected one byte", format->name));
    format->require("data").blob->read(0, std::as_writable_bytes(std::span(&order, 1)));
    if (order != 0)
      throw Error(ErrorKind::unsupported, fmt::format("matrix {}: {} is {}, only 0, for rows, is supported",
                                                      matrix.name(), format->name, order));
  }
  const BlobPtr maxima = largest.require("data").blob;
  const auto divide = [maxima](std::uint64_t first, std::span<float> out) {
    maxima->read(first * sizeof(float), std::as_writable_bytes(out));
    for (float& scale : out) scale /= kLargest;
  };
  return make_row_scaled_i8(matrix, weight, make_computed_f32(weight.shape[0], divide));
}

// Returns a warning if quant_map differs from bitsandbytes' own table for nf4 or fp4. bitsandbytes decodes with its own
// table, but Poise with quant_map.
std::vector<std::string> list_warnings(const Model& model, const QuantizationConfig&,
                                       std::span<const std::string> matrices) {
  constexpr float kRounding = 1e-3F;
  static constexpr std::array<float, 16> kNf4 = {
      -1.0F,      -0.6961928F, -0.52507305F, -0.39491749F, -0.28444138F, -0.18477343F, -0.09105004F, 0.0F,
      0.0795803F, 0.1609302F,  0.2461123F,   0.33791524F,  0.44070983F,  0.562617F,    0.72295684F,  1.0F};
  static constexpr std::array<float, 8> kFp4 = {0.0F, 0.0625F / 12, 8.0F / 12, 1.0F, 4.0F / 12, 0.5F, 2.0F / 12, 0.25F};
  std::vector<std::string> others;
  std::string type;  // the type of the first matrix in `others`
  for (const std::string& name : matrices) {
    const MatrixParts matrix(model, name, k4Bit);
    const State state(matrix);
    if (state.read_type() != "nf4" && state.read_type() != "fp4") continue;
    const LoadedBlob map(matrix.require(".weight.quant_map").require("data").blob);
    const auto is_other = [&](std::size_t code) {
      const float number = state.read_type() == "nf4" ? kNf4[code] : (code < 8 ? kFp4[code] : -kFp4[code - 8]);
      return !(std::abs(map.at<float>(code) - number) < kRounding);
    };
    bool differs = false;
    for (std::size_t code = 0; code < kNf4.size() && !differs; ++code) differs = is_other(code);
    if (!differs) continue;
    if (others.empty()) type = state.read_type();
    others.push_back(name);
  }
  if (others.empty()) return {};
  return {fmt::format("quant_map of matrix {} has other numbers than {}, which its state names: quant_map is used",
                      list_names(others, 1), type)};
}

}  // namespace

const QuantizationScheme k4Bit = {
    .title = "bitsandbytes",
    .method = kMethod,
    .marker = ".weight.quant_map",
    .parts = kParts4,
    .code_types = kCodes4,
    .list_warnings = list_warnings,
    .fold = fold_4bit,
};

const QuantizationScheme k8Bit = {
    .title = "bitsandbytes int8",
    .method = kMethod,
    .marker = ".SCB",
    .parts = kParts8,
    .code_types = kCodes8,
    .fold = fold_8bit,
};

}  // namespace poise::schemes::bitsandbytes
