// Reads AWQ's directories, with codes in the order of AWQ's gemm kernels. A matrix of `in` columns and `out` rows has
// these parts:
//
//   qweight   i32 [in, out / 8]; a word has the codes of eight neighbours in a column, in the order of kPlaces
//   scales    f16, bf16 or f32 [groups, out]
//   qzeros    i32 [groups, out / 8]; a word has the zero points of eight neighbours, in the same order
//
// value = (code - zero) * scale.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "schemes/make_tensors.hpp"

namespace poise::schemes::awq {
namespace {

constexpr unsigned kBits = 4;
constexpr std::array<std::string_view, 2> kParts = {".scales", ".qzeros"};
// The place of each neighbour in a word: from its low bits up, a word holds neighbours 0, 2, 4, 6, 1, 3, 5, 7.
constexpr std::array<std::uint8_t, 8> kPlaces = {0, 4, 1, 5, 2, 6, 3, 7};

// Returns the integer under `key`, or else under `older`, AWQ's own name of the key in older directories. Throws
// invalid_file (without path) if both are missing.
std::int64_t read_number(const QuantizationConfig& config, std::string_view key, std::string_view older) {
  const auto found = config.read_integer(key);
  return found ? *found : config.require_integer(older);
}

void require_known_variant(const QuantizationConfig& config) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorKind::unsupported, fmt::format("quantization_config: {}", what));
  };
  const std::string version = config.read_text("version").value_or("gemm");
  if (version != "gemm" && version != "GEMM") refuse(fmt::format("version is {}, only gemm is supported", version));
  if (const std::int64_t bits = read_number(config, "bits", "w_bit"); bits != kBits)
    refuse(fmt::format("bits is {}, only 4 is supported", bits));
  if (const std::int64_t size = read_number(config, "group_size", "q_group_size"); size < 1 && size != -1)
    throw Error(ErrorKind::invalid_file,
                fmt::format("quantization_config: group_size is {}, expected -1 or a positive number", size));
}

Tensor fold(const MatrixParts& matrix, const QuantizationConfig& config) {
  const std::int64_t size = read_number(config, "group_size", "q_group_size");
  return fold_words(matrix, {.weight = ".qweight",
                             .scales = ".scales",
                             .zeros = ".qzeros",
                             .group_size = size == -1 ? 0 : static_cast<std::uint64_t>(size)});
}

// Returns a warning if zero_point is false, but the first zero points of a matrix are not all 8. Poise uses the stored
// zero points, as AWQ's kernels do.
std::vector<std::string> list_warnings(const Model& model, const QuantizationConfig& config,
                                       std::span<const std::string> matrices) {
  constexpr float kMiddle = 1U << (kBits - 1);
  if (config.read_boolean("zero_point").value_or(true)) return {};
  std::vector<std::string> others;
  for (const std::string& name : matrices) {
    const Tensor matrix = fold(MatrixParts(model, name, kAwq), config);
    const std::vector<float> zeros = read_f16_sample(matrix.require("zeros").blob);
    if (std::ranges::any_of(zeros, [](float zero) { return zero != kMiddle; })) others.push_back(name);
  }
  if (others.empty()) return {};
  return {fmt::format("zero_point is false, but matrix {} has other zero points than {}: they are used",
                      list_names(others, 1), kMiddle)};
}

}  // namespace

Tensor fold_words(const MatrixParts& matrix, const WordParts& parts) {
  const Tensor& weight = matrix.require(parts.weight);
  matrix.require_data(weight, kWordTypes);
  matrix.require_rank(weight, 2);
  const std::uint64_t in = weight.shape[0];
  const std::uint64_t out = weight.shape[1] * 8;
  const std::uint64_t group_size = parts.group_size == 0 ? in : parts.group_size;
  if (in == 0 || in % group_size != 0)
    matrix.fail(fmt::format("groups of {} do not divide its {} columns", group_size, in));
  const std::uint64_t groups = in / group_size;
  const Tensor& scales = matrix.require(parts.scales, kScaleTypes, {groups, out});
  const Tensor& zeros = matrix.require(parts.zeros, kWordTypes, {groups, weight.shape[1]});
  const auto describe_codes = [&](const Tensor& tensor, std::uint64_t rows) {
    return PackedCodes{.words = tensor.require("data").blob,
                       .rows = rows,
                       .columns = out,
                       .bits = kBits,
                       .order = parts.in_order ? std::span<const std::uint8_t>() : kPlaces,
                       .add = parts.add};
  };
  return make_group_tensor(
      matrix, {.shape = {out, in},
               .bits = kBits,
               .group_size = group_size,
               .codes = make_codes_blob(describe_codes(weight, in), MatrixOrder::transposed, kBits),
               .scales = make_part("scales", scales.require("data").dtype, transpose_data(scales)),
               .zeros = make_part("zeros", DType::f16,
                                  make_code_numbers_blob(describe_codes(zeros, groups), MatrixOrder::transposed))});
}

const QuantizationScheme kAwq = {
    .title = "AWQ",
    .method = "awq",
    .require_known_variant = require_known_variant,
    .marker = ".qweight",
    .parts = kParts,
    .list_warnings = list_warnings,
    .fold = fold,
};

}  // namespace poise::schemes::awq
