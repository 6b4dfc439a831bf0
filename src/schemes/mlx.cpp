// Reads MLX's directories. A matrix [out, in] has these parts:
//
//   weight    u32 [out, in * bits / 32]; the words of a row are the stream of its codes, of 2 to 6 or 8 bits
//   scales    [out, in / group_size]
//   biases    the shape of scales
//
// value = code * scale + bias, with the mode "affine". A zero point of -bias / scale is equivalent, except for float32
// rounding. Poise stores codes of 3 bits in 4 bits, and codes of 5 and 6 bits in 8.
//
// In other modes, the words have floating-point numbers of 4 or 8 bits, from the low bits on. There are no biases, and
// parts may have a third dimension, in front: that of a stack of experts.
//
//   mode    number    columns of a group   scales, as bytes
//   mxfp4   f4_e2m1   32                   exponents (E8M0)
//   mxfp8   f8_e4m3   32                   exponents
//   nvfp4   f4_e2m1   16                   f8_e4m3
//
// Source: quantize() of mlx.core, and QuantizedLinear of mlx.nn.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "schemes/make_tensors.hpp"
#include "views/dense.hpp"

namespace poise::schemes::mlx {
namespace {

constexpr std::array<std::string_view, 2> kParts = {".weight", ".biases"};
constexpr std::array<DType, 1> kCodes = {DType::u32};

// Describes a mode. Its group_size and bits are the defaults of the configuration; only affine allows others.
struct Mode {
  std::string_view name;
  std::int64_t group_size;
  std::int64_t bits;
  DType number = DType::unknown;  // unknown: affine codes
};
constexpr std::array kModes = std::to_array<Mode>({{"affine", 64, 4},
                                                   {"mxfp4", 32, 4, DType::f4_e2m1},
                                                   {"mxfp8", 32, 8, DType::f8_e4m3},
                                                   {"nvfp4", 16, 4, DType::f4_e2m1}});

// Returns the mode that the settings name, by default affine. Throws unsupported (without path) if it is not in the
// table. `where` begins the message.
const Mode& find_mode(const QuantizationConfig& settings, std::string_view where) {
  const std::string name = settings.read_text("mode").value_or("affine");
  const auto found = std::ranges::find(kModes, name, &Mode::name);
  if (found != kModes.end()) return *found;
  std::vector<std::string_view> names;
  for (const Mode& mode : kModes) names.push_back(mode.name);
  throw Error(ErrorKind::unsupported,
              fmt::format("{}mode is {}, only {} are supported", where, name, fmt::join(names, ", ")));
}

void require_known_variant(const QuantizationConfig& config) {
  (void)find_mode(config, "quantization: ");
  for (const auto& [name, own] : config.keys()) {
    if (const auto* keys = own.get_if<Attributes>())
      (void)find_mode(QuantizationConfig(*keys), fmt::format("quantization: {}: ", name));
  }
}

// Returns warnings if quantization_config differs from `quantization`, which MLX follows, and if `quantization` has the
// value false for a quantized matrix.
std::vector<std::string> list_warnings(const Model& model, const QuantizationConfig& config,
                                       std::span<const std::string> matrices) {
  std::vector<std::string> warnings;
  const auto* other = model.config_json.get_if<Attributes>("quantization_config");
  if (other != nullptr && !(*other == config.keys()))
    warnings.emplace_back("quantization and quantization_config differ: quantization is used");
  std::vector<std::string_view> denied;
  for (const std::string& name : matrices) {
    const Value* own = config.keys().find(name);
    if (own != nullptr && *own == Value(false)) denied.emplace_back(name);
  }
  if (!denied.empty()) {
    warnings.push_back(
        fmt::format("quantization is false for matrix {}, but there are scales next to its codes: its parts are used",
                    list_names(denied, 1)));
  }
  return warnings;
}

// Returns the settings of a matrix: those under its name, or else those for all.
QuantizationConfig find_settings(const MatrixParts& matrix, const QuantizationConfig& config) {
  const auto* keys = config.keys().get_if<Attributes>(matrix.name());
  return keys == nullptr ? config : QuantizationConfig(*keys);
}

// Folds a matrix, or a stack of matrices, whose words have floating-point numbers.
Tensor fold_numbers(const MatrixParts& matrix, const Mode& mode, const QuantizationConfig& settings) {
  const auto require_number = [&](std::string_view key, std::int64_t expected) {
    if (const std::int64_t number = settings.read_integer(key).value_or(expected); number != expected)
      matrix.fail(
          fmt::format("quantization states {} {}, expected {} for the mode {}", key, number, expected, mode.name));
  };
  require_number("bits", mode.bits);
  require_number("group_size", mode.group_size);
  const Tensor& weight = matrix.require(".weight");
  const Part& words = matrix.require_data(weight, {DType::u32});
  if (weight.shape.size() != 3) matrix.require_rank(weight, 2);
  if (const Tensor* biases = matrix.find(".biases"))
    matrix.fail(fmt::format("there is {}, but the mode {} has no biases", biases->name, mode.name));
  const Tensor& scales = matrix.require(".scales");
  Shape shape = weight.shape;
  shape.back() *= 32 / static_cast<std::uint64_t>(mode.bits);
  if (mode.group_size == 32) return make_mx_tensor(matrix, shape, make_part("data", mode.number, words.blob), scales);
  const Part& factors = matrix.require_data(scales, {DType::u8});
  const auto group = static_cast<std::uint64_t>(mode.group_size);
  if (shape.back() == 0 || shape.back() % group != 0)
    matrix.fail(fmt::format("groups of {} do not divide its {} columns", group, shape.back()));
  Shape groups = shape;
  groups.back() /= group;
  matrix.require_shape(scales, groups);
  return make_block_scaled_tensor(
      shape, mode.number, words.blob,
      make_cast_blob(scales.name, factors.blob, DType::f8_e4m3, scales.elements(), DType::f32), 1, group);
}

Tensor fold(const MatrixParts& matrix, const QuantizationConfig& config) {
  const QuantizationConfig settings = find_settings(matrix, config);
  const Mode& mode = find_mode(settings, "quantization: ");
  if (mode.number != DType::unknown) return fold_numbers(matrix, mode, settings);
  const std::int64_t bits = settings.read_integer("bits").value_or(mode.bits);
  const std::int64_t group_size = settings.read_integer("group_size").value_or(mode.group_size);
  if (bits < 2 || bits > 8 || bits == 7 || group_size < 1 || group_size > INT32_MAX)
    matrix.fail(fmt::format(
        "quantization states bits {} and group_size {}, expected bits of 2 to 6 or 8, and a positive group_size", bits,
        group_size));
  const Tensor& weight = matrix.require(".weight");
  const Part& words = matrix.require_data(weight, {DType::u32});
  matrix.require_rank(weight, 2);
  const Tensor& scales = matrix.require(".scales");
  const Part& factors = matrix.require_data(scales, kScaleTypes);
  matrix.require_rank(scales, 2);
  const std::uint64_t rows = weight.shape[0];
  if (weight.shape[1] > UINT32_MAX || weight.shape[1] * 32 % static_cast<std::uint64_t>(bits) != 0)
    matrix.fail(fmt::format(
        "rows of {} have {} words of 32 bits, which are not whole codes of {} bits: bits in quantization is wrong",
        weight.name, weight.shape[1], bits));
  const std::uint64_t columns = weight.shape[1] * 32 / static_cast<std::uint64_t>(bits);
  if (columns == 0 || columns % static_cast<std::uint64_t>(group_size) != 0)
    matrix.fail(fmt::format("groups of {} do not divide its {} columns", group_size, columns));
  matrix.require_shape(scales, {rows, columns / static_cast<std::uint64_t>(group_size)});
  const Tensor& biases = matrix.require(".biases", kScaleTypes, scales.shape);
  const unsigned stored = round_bits(static_cast<unsigned>(bits));
  const BlobPtr divided = cast_to_f32(biases);
  const BlobPtr divisors = cast_to_f32(scales);
  const std::string name = matrix.name();
  const auto compute_zeros = [=](std::uint64_t first, std::span<float> out) {
    std::vector<float> scale(out.size());
    divided->read(first * sizeof(float), std::as_writable_bytes(out));
    divisors->read(first * sizeof(float), std::as_writable_bytes(std::span(scale)));
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (scale[i] == 0 && out[i] != 0)
        throw Error(
            ErrorKind::unsupported,
            fmt::format("matrix {}: MLX: group {} has the scale 0 and the bias {}, which no zero point can express",
                        name, first + i, out[i]));
      out[i] = scale[i] == 0 ? 0.0F : -out[i] / scale[i];
    }
  };
  return make_group_tensor(
      matrix, {.shape = {rows, columns},
               .bits = stored,
               .group_size = static_cast<std::uint64_t>(group_size),
               .codes = make_codes_blob(
                   {.words = words.blob, .rows = rows, .columns = columns, .bits = static_cast<unsigned>(bits)},
                   MatrixOrder::same, stored),
               .scales = make_part("scales", factors),
               .zeros = make_computed_part(matrix, "zeros", scales.elements(), {&scales, &biases}, compute_zeros)});
}

}  // namespace

const QuantizationScheme kMlx = {
    .title = "MLX",
    .method = "mlx",
    .require_known_variant = require_known_variant,
    .marker = ".scales",
    .parts = kParts,
    .code_types = kCodes,
    .list_warnings = list_warnings,
    .fold = fold,
};

}  // namespace poise::schemes::mlx
