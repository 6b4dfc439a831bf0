// Reads files of ComfyUI that describe each quantized module X by JSON. Either the tensor X.comfy_quant (u8) has the
// module's JSON, {"format": "float8_e4m3fn"}, or the key _quantization_metadata of the file's metadata describes all
// modules: {"layers": {"X": {"format": "float8_e4m3fn"}}}. The parts are:
//
//   float8_e4m3fn, float8_e5m2   weight f8 [out, in]; weight_scale, one number or one for each row
//   int8_tensorwise              weight i8 [out, in]; weight_scale, the same
//
// value = weight * weight_scale. Poise refuses modules with "convrot", whose numbers are rotated, and the formats nvfp4
// and mxfp8, whose scales are in an order for GPUs.
//
// Source: convert_old_quants() of comfy/utils.py, and ComfyUI's page about quantization.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "schemes/make_tensors.hpp"
#include "views/dense.hpp"

namespace poise {
namespace schemes::comfy_ui {
namespace {

constexpr std::string_view kMarker = ".comfy_quant";
constexpr std::array<std::string_view, 2> kParts = {".weight", ".weight_scale"};
constexpr std::uint64_t kMostBytes = 65536;  // the limit of a module's JSON

Attributes read_description(const MatrixParts& matrix) {
  const Tensor& tensor = matrix.require(kMarker);
  const Part& data = matrix.require_data(tensor, {DType::u8});
  if (data.blob->size() > kMostBytes)
    matrix.fail(fmt::format("{} has {} bytes, expected at most {}", tensor.name, data.blob->size(), kMostBytes));
  std::string text(static_cast<std::size_t>(data.blob->size()), '\0');
  data.blob->read(0, std::as_writable_bytes(std::span(text)));
  const Value value = parse_json(text, tensor.name);
  const auto* keys = value.get_if<Attributes>();
  if (keys == nullptr) matrix.fail(fmt::format("{}: expected a JSON object", tensor.name));
  return *keys;
}

Tensor fold_int8(const MatrixParts& matrix) {
  const Tensor& weight = matrix.require(".weight");
  matrix.require_data(weight, {DType::i8});
  matrix.require_rank(weight, 2);
  const std::uint64_t rows = weight.shape[0];
  const std::uint64_t columns = weight.shape[1];
  if (rows == 0 || columns == 0) matrix.fail(fmt::format("{} has no elements", weight.name));
  const Tensor& scales = matrix.require(".weight_scale");
  matrix.require_data(scales, kScaleTypes);
  const bool is_one = scales.elements() == 1;
  if (!is_one && scales.shape != Shape{rows} && scales.shape != Shape{rows, 1})
    matrix.fail(fmt::format("the shape of {} is {}, expected one number, or one for each of {} rows", scales.name,
                            to_string(scales.shape), rows));
  BlobPtr numbers = cast_to_f32(scales);
  if (is_one)
    numbers = repeat_blocks(std::move(numbers), DType::f32, {.rows = 1, .columns = 1, .down = rows}, {rows, 1});
  return make_row_scaled_i8(matrix, weight, std::move(numbers));
}

Tensor fold(const MatrixParts& matrix, const QuantizationConfig&) {
  const Attributes description = read_description(matrix);
  const QuantizationConfig keys(description);
  const std::string format = keys.read_text("format").value_or("");
  const auto refuse = [&](std::string_view problem) {
    throw Error(ErrorKind::unsupported, fmt::format("matrix {}: ComfyUI: {}", matrix.name(), problem));
  };
  if (keys.has("convrot")) refuse("its numbers are rotated (convrot)");
  if (format == "int8_tensorwise") return fold_int8(matrix);
  if (format != "float8_e4m3fn" && format != "float8_e5m2")
    refuse(fmt::format("its format is {}, only float8_e4m3fn, float8_e5m2 and int8_tensorwise are supported", format));
  matrix.require_data(matrix.require(".weight"), {format == "float8_e5m2" ? DType::f8_e5m2 : DType::f8_e4m3});
  return make_scaled_f8(matrix, ".weight_scale");
}

}  // namespace

const QuantizationScheme kDescribed = {
    .title = "ComfyUI",
    .method = "",
    .marker = kMarker,
    .parts = kParts,
    .left_out = kNotOfWeights,
    .fold = fold,
};

}  // namespace schemes::comfy_ui

std::optional<Model> add_comfy_tensors(const Model& model) {
  constexpr std::string_view kKey = "_quantization_metadata";
  const auto* text = model.attributes.get_if<std::string>(kKey);
  const auto is_marker = [](const Tensor& tensor) { return tensor.name.ends_with(schemes::comfy_ui::kMarker); };
  if (text == nullptr && std::ranges::none_of(model.tensors(), is_marker)) return std::nullopt;
  Model result(model.header());
  for (const Tensor& tensor : model.tensors()) result.add(tensor);
  if (text == nullptr) return result;
  const Value value = parse_json(*text, std::string(kKey));
  const auto* layers = get_member<Attributes>(value.get_if<Attributes>(), "layers");
  if (layers == nullptr) throw Error(ErrorKind::invalid_file, fmt::format("{}: layers is not an object", kKey));
  result.attributes.erase(kKey);
  for (const auto& [name, description] : *layers) {
    std::string marker = fmt::format("{}{}", name, schemes::comfy_ui::kMarker);
    if (model.find(name + ".weight") == nullptr || model.find(marker) != nullptr) continue;
    const std::string json = to_json(description);
    const auto bytes = std::as_bytes(std::span(json));
    result.add(make_dense(std::move(marker), {json.size()}, DType::u8,
                          make_memory_blob({bytes.begin(), bytes.end()}, std::string(kKey))));
  }
  return result;
}

}  // namespace poise
