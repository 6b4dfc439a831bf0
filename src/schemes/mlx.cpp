// MLX. A matrix [out, in] has these parts:
//
//   weight    u32 [out, in * bits / 32]; the words of a row are the stream of its codes, of 2 to 8 bits
//   scales    [out, in / group_size]
//   biases    the same shape
//
// value = code * scale + bias. A zero point of -bias / scale is equivalent, except for float32 rounding; codes of 3
// bits are stored here in 4 bits, those of 5 and 6 in 8.
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "schemes/make_tensors.hpp"

namespace poise::schemes::mlx {
namespace {

constexpr std::array<std::string_view, 2> kParts = {".weight", ".biases"};
constexpr std::array<DType, 1> kCodes = {DType::u32};

void require_known(const QuantizationConfig& config) {
  const auto require_affine = [](const QuantizationConfig& settings, std::string_view where) {
    if (const std::string mode = settings.text("mode").value_or("affine"); mode != "affine")
      throw Error(ErrorKind::unsupported, fmt::format("{}mode is {}, only affine is supported", where, mode));
  };
  require_affine(config, "quantization: ");
  for (const auto& [name, own] : config.keys()) {
    if (const auto* keys = own.get_if<Attributes>())
      require_affine(QuantizationConfig(*keys), fmt::format("quantization: {}: ", name));
  }
}

// Returns warnings where the configuration contradicts the parts. MLX follows `quantization`, which may have settings
// for single matrices.
std::vector<std::string> find_doubts(const Model& model, const QuantizationConfig& config,
                                     std::span<const std::string> matrices) {
  std::vector<std::string> doubts;
  const auto* other = model.config_json.get_if<Attributes>("quantization_config");
  if (other != nullptr && !(*other == config.keys()))
    doubts.emplace_back("quantization and quantization_config differ: quantization is used");
  std::vector<std::string_view> denied;
  for (const std::string& name : matrices) {
    const Value* own = config.keys().find(name);
    if (own != nullptr && *own == Value(false)) denied.emplace_back(name);
  }
  if (!denied.empty()) {
    doubts.push_back(
        fmt::format("quantization is false for matrix {}, but there are scales next to its codes: its parts are used",
                    list_names(denied, 1)));
  }
  return doubts;
}

// Returns the settings of a matrix: those under its name, or else those for all.
QuantizationConfig find_settings(const MatrixParts& matrix, const QuantizationConfig& config) {
  const auto* keys = config.keys().get_if<Attributes>(matrix.name());
  return keys == nullptr ? config : QuantizationConfig(*keys);
}

Tensor fold(const MatrixParts& matrix, const QuantizationConfig& config) {
  const QuantizationConfig settings = find_settings(matrix, config);
  const std::int64_t bits = settings.number("bits");
  const std::int64_t group_size = settings.number("group_size");
  if (bits < 2 || bits > 8 || bits == 7 || group_size < 1 || group_size > INT32_MAX)
    matrix.fail(fmt::format(
        "quantization states bits {} and group_size {}, expected bits of 2 to 6 or 8, and a positive group_size", bits,
        group_size));
  const Tensor& weight = matrix.require(".weight");
  const Part& words = matrix.data(weight, {DType::u32});
  matrix.require_rank(weight, 2);
  const Tensor& scales = matrix.require(".scales");
  const Part& factors = matrix.data(scales, kScaleTypes);
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
  return make_groups(matrix,
                     {.shape = {rows, columns},
                      .bits = stored,
                      .group_size = static_cast<std::uint64_t>(group_size),
                      .codes = make_codes_blob(
                          {.words = words.blob, .rows = rows, .columns = columns, .bits = static_cast<unsigned>(bits)},
                          MatrixOrder::same, stored),
                      .scales = make_part("scales", factors),
                      .zeros = compute_part(matrix, "zeros", scales.elements(), {&scales, &biases}, compute_zeros)});
}

}  // namespace

const QuantizationScheme kMlx = {
    .title = "MLX",
    .method = "mlx",
    .require_known = require_known,
    .marker = ".scales",
    .parts = kParts,
    .code_types = kCodes,
    .doubts = find_doubts,
    .fold = fold,
};

}  // namespace poise::schemes::mlx
