// Reads GPTQ, as AutoGPTQ and GPTQModel write it. A matrix of `in` columns and `out` rows has these parts:
//
//   qweight   i32 [in * bits / 32, out]; a column of words is the stream of a row's codes
//   scales    f16, bf16 or f32 [groups, out]
//   qzeros    i32 [groups, out * bits / 32], the zero points of a group as a stream. Version 1 of the format stores
//             each minus 1. Some files name one version, but store zero points as the other. With sym, all zero points
//             are 2^(bits - 1), so the stored numbers show the version
//   g_idx     i32 or i64 [in], the group of each column. If it is missing, neighbours share a group. With desc_act,
//             matrices of several groups need it
//
// There are in / group_size groups, rounded up. If the last one is shorter, Poise splits all groups into smaller ones
// of one size, which divides `in`, with the same scales.
//
// The key `dynamic` has other settings for some modules, by regular expressions: {"+:.*down.*": {"bits": 8},
// "-:.*up.*": {}}, where "-:" means modules that are not quantized. Poise does not match the expressions: it takes the
// settings whose bits and group_size fit the shapes of qweight, scales and qzeros.
//
// value = (code - zero) * scale. 32 codes of 3 bits take three words; Poise stores each code in four bits.
#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"
#include "schemes/make_tensors.hpp"

namespace poise::schemes::gptq {
namespace {

constexpr std::array<std::string_view, 3> kParts = {".scales", ".qzeros", ".g_idx"};

struct GroupSettings {
  std::int64_t bits = 0;
  std::int64_t group_size = 0;
  bool in_other_order = false;
  bool is_symmetric = false;
};

// Returns the settings of the directory first, and then those that `dynamic` has for some modules. Keys that these lack
// have the directory's values.
std::vector<GroupSettings> read_all_settings(const QuantizationConfig& config) {
  std::vector<GroupSettings> all = {{config.require_integer("bits"), config.require_integer("group_size"),
                                     config.read_boolean("desc_act").value_or(false),
                                     config.read_boolean("sym").value_or(false)}};
  if (!config.has("dynamic")) return all;
  const Attributes* map = config.find_object("dynamic");
  for (const auto& [pattern, value] : *map) {
    if (pattern.starts_with("-:")) continue;  // these modules are not quantized
    const auto* keys = value.get_if<Attributes>();
    if (keys == nullptr)
      throw Error(ErrorKind::invalid_file,
                  fmt::format("quantization_config: dynamic: {}: expected an object", pattern));
    for (const std::string_view key : {"checkpoint_format", "pack_dtype"}) {
      if (keys->find(key) != nullptr)
        throw Error(ErrorKind::unsupported,
                    fmt::format("quantization_config: dynamic: {}: {} is not supported", pattern, key));
    }
    const QuantizationConfig own(*keys);
    all.push_back({own.read_integer("bits").value_or(all.front().bits),
                   own.read_integer("group_size").value_or(all.front().group_size),
                   own.read_boolean("desc_act").value_or(all.front().in_other_order),
                   own.read_boolean("sym").value_or(all.front().is_symmetric)});
  }
  return all;
}

constexpr std::string_view kPacking = "packing_format";

// Names the version of the format, and the key that has it. GPTQModel writes the key `checkpoint_format`; later
// versions read `format` instead. AutoRound writes `packing_format` (auto_round.cpp).
struct FormatName {
  std::string_view key;
  std::string name;
  bool is_version_1() const { return name == "gptq" || name == "auto_round:auto_gptq"; }
};
FormatName find_format_name(const QuantizationConfig& config) {
  for (const std::string_view key : std::initializer_list<std::string_view>{"format", "checkpoint_format", kPacking}) {
    if (auto name = config.read_text(key)) return {key, *std::move(name)};
  }
  return {"checkpoint_format", "gptq"};
}

void require_known_variant(const QuantizationConfig& config) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorKind::unsupported, fmt::format("quantization_config: {}", what));
  };
  if (const auto [key, name] = find_format_name(config); name != "gptq" && name != "gptq_v2" && key != kPacking)
    refuse(fmt::format("{} is {}, only gptq and gptq_v2 are supported", key, name));
  if (const std::string word = config.read_text("pack_dtype").value_or("int32"); word != "int32")
    refuse(fmt::format("pack_dtype is {}, only int32 is supported", word));
  for (const GroupSettings& settings : read_all_settings(config)) {
    if (settings.bits != 2 && settings.bits != 3 && settings.bits != 4 && settings.bits != 8)
      refuse(fmt::format("bits is {}, only 2, 3, 4 and 8 are supported", settings.bits));
    if (settings.group_size < 1 && settings.group_size != -1)
      throw Error(
          ErrorKind::invalid_file,
          fmt::format("quantization_config: group_size is {}, expected -1 or a positive number", settings.group_size));
  }
}

// Returns the settings that fit the shapes of the matrix's parts: the directory's, or those of `dynamic`. If several
// fit, prefers those without desc_act, and then the first ones; the result is symmetric only if all that fit are.
// Returns the directory's settings if none fit.
GroupSettings find_settings(const MatrixParts& matrix, const QuantizationConfig& config) {
  std::vector<GroupSettings> all = read_all_settings(config);
  const GroupSettings usual = all.front();
  const Tensor* words = matrix.find(".qweight");
  const Tensor* scales = matrix.find(".scales");
  if (all.size() == 1 || words == nullptr || scales == nullptr || words->shape.size() != 2 || scales->shape.size() != 2)
    return usual;
  const auto fits = [&](const GroupSettings& settings) {
    const auto bits = static_cast<std::uint64_t>(settings.bits);
    if (words->shape[0] > UINT32_MAX || words->shape[0] * 32 % bits != 0) return false;
    const std::uint64_t in = words->shape[0] * 32 / bits;
    const std::uint64_t size = settings.group_size == -1 ? in : static_cast<std::uint64_t>(settings.group_size);
    const Tensor* zeros = matrix.find(".qzeros");
    return size != 0 && in != 0 && split_evenly(in, size).count == scales->shape[0] && zeros != nullptr &&
           zeros->shape.size() == 2 && zeros->shape[1] <= UINT32_MAX && zeros->shape[1] * 32 == scales->shape[1] * bits;
  };
  std::ranges::stable_sort(all, {}, &GroupSettings::in_other_order);
  const auto found = std::ranges::find_if(all, fits);
  if (found == all.end()) return usual;
  GroupSettings settings = *found;
  settings.is_symmetric =
      std::all_of(found, all.end(), [&](const GroupSettings& other) { return other.is_symmetric || !fits(other); });
  return settings;
}

// Describes how the zero points of a matrix are stored.
struct ZeroPointStorage {
  unsigned add = 0;              // 0 or 1, the number to add to each zero point, modulo 2^bits
  bool contradict_name = false;  // true if the zero points contradict the name of the format
  bool contradict_sym = false;   // true if `sym` is true, but the zero points are not those of symmetric groups
};

// Finds the storage by the name of the format. With sym, the first stored zero points decide instead, provided that all
// are 2^(bits - 1), or all are one less. Requires: the shape of qzeros is [groups, out * bits / 32].
ZeroPointStorage find_zero_point_storage(const MatrixParts& matrix, const QuantizationConfig& config,
                                         const GroupSettings& settings) {
  const bool less_one = find_format_name(config).is_version_1();
  ZeroPointStorage result{.add = less_one ? 1U : 0U};
  if (!settings.is_symmetric) return result;
  const Tensor& zeros = matrix.require(".qzeros");
  const auto bits = static_cast<unsigned>(settings.bits);
  const std::vector<float> first = read_f16_sample(make_code_numbers_blob({.words = zeros.require("data").blob,
                                                                           .rows = zeros.shape[0],
                                                                           .columns = zeros.shape[1] * 32 / bits,
                                                                           .bits = bits},
                                                                          MatrixOrder::same));
  const auto middle = static_cast<float>(1U << (bits - 1));
  const auto are_all = [&](float number) {
    return std::ranges::all_of(first, [&](float zero) { return zero == number; });
  };
  const bool are_less_one = are_all(middle - 1);
  if (!are_less_one && !are_all(middle)) {
    result.contradict_sym = true;
    return result;
  }
  result.add = are_less_one ? 1 : 0;
  result.contradict_name = are_less_one != less_one;
  return result;
}

std::vector<std::string> list_warnings(const Model& model, const QuantizationConfig& config,
                                       std::span<const std::string> matrices) {
  const FormatName format = find_format_name(config);
  std::vector<std::string> misnamed;
  std::vector<std::string> not_symmetric;
  unsigned middle = 0;  // 2^(bits - 1) of the first matrix in `misnamed`
  for (const std::string& name : matrices) {
    const MatrixParts matrix(model, name, kGptq);
    const GroupSettings settings = find_settings(matrix, config);
    const ZeroPointStorage zeros = find_zero_point_storage(matrix, config, settings);
    if (zeros.contradict_name && misnamed.empty()) middle = 1U << (settings.bits - 1);
    if (zeros.contradict_name) misnamed.push_back(name);
    if (zeros.contradict_sym) not_symmetric.push_back(name);
  }
  std::vector<std::string> warnings;
  if (const auto other = config.read_text("checkpoint_format"); other && *other != format.name)
    warnings.push_back(fmt::format("format is {} and checkpoint_format {}: format is used", format.name, *other));
  if (!misnamed.empty()) {
    warnings.push_back(fmt::format(
        "{} is {}, so the zero points of matrix {} would be {}, but sym is true, so they are {}: sym is used",
        format.key, format.name, list_names(misnamed, 1), format.is_version_1() ? middle + 1 : middle - 1, middle));
  }
  if (!not_symmetric.empty()) {
    warnings.push_back(
        fmt::format("sym is true, but the zero points of matrix {} differ: they are used as {} stores them",
                    list_names(not_symmetric, 1), format.name));
  }
  return warnings;
}

Tensor fold(const MatrixParts& matrix, const QuantizationConfig& config) {
  const GroupSettings settings = find_settings(matrix, config);
  const auto bits = static_cast<unsigned>(settings.bits);
  const Tensor& weight = matrix.require(".qweight");
  const Part& words = matrix.require_data(weight, kWordTypes);
  matrix.require_rank(weight, 2);
  if (weight.shape[0] > UINT32_MAX || weight.shape[0] * 32 % bits != 0)
    matrix.fail(
        fmt::format("columns of {} have {} words of 32 bits, which are not whole codes of {} bits: bits in "
                    "quantization_config is wrong",
                    weight.name, weight.shape[0], bits));
  const std::uint64_t in = weight.shape[0] * 32 / bits;
  const std::uint64_t out = weight.shape[1];
  const std::int64_t wanted = settings.group_size;
  if (in == 0) matrix.fail(fmt::format("{} has no codes", weight.name));
  const EvenGroups groups = split_evenly(in, wanted == -1 ? in : std::min(static_cast<std::uint64_t>(wanted), in));
  const Tensor& scales = matrix.require(".scales", kScaleTypes, {groups.count, out});
  const DType factors = scales.require("data").dtype;
  const Tensor& zeros = matrix.require(".qzeros");
  const Part& zero_words = matrix.require_data(zeros, kWordTypes);
  if (out * bits % 32 != 0)
    matrix.fail(fmt::format("zero points of {} bits for {} rows are not whole words", bits, out));
  matrix.require_shape(zeros, {groups.count, out * bits / 32});
  if (settings.in_other_order && groups.count > 1) matrix.require(".g_idx");
  const unsigned added = find_zero_point_storage(matrix, config, settings).add;
  const unsigned stored = round_bits(bits);
  const auto repeat_for_groups = [&](DType type, BlobPtr numbers) {
    if (groups.times == 1) return numbers;
    const BlockGrid grid = {.rows = out, .columns = groups.count, .across = groups.times};
    return repeat_blocks(std::move(numbers), type, grid, {out, in / groups.size});
  };
  return make_group_tensor(
      matrix,
      {.shape = {out, in},
       .bits = stored,
       .group_size = groups.size,
       .codes = make_codes_blob(
           {.words = words.blob, .rows = in, .columns = out, .bits = bits, .along = PackedCodes::Along::columns},
           MatrixOrder::transposed, stored),
       .scales = make_part("scales", factors, repeat_for_groups(factors, transpose_data(scales))),
       .zeros = make_part(
           "zeros", DType::f16,
           repeat_for_groups(
               DType::f16,
               make_code_numbers_blob(
                   {.words = zero_words.blob, .rows = groups.count, .columns = out, .bits = bits, .add = added},
                   MatrixOrder::transposed))),
       .index = make_group_index(matrix, ".g_idx", in, groups)});
}

}  // namespace

const QuantizationScheme kGptq = {
    .title = "GPTQ",
    .method = "gptq",
    .require_known_variant = require_known_variant,
    .marker = ".qweight",
    .parts = kParts,
    .list_warnings = list_warnings,
    .fold = fold,
};

}  // namespace poise::schemes::gptq
