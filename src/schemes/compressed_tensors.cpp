// Reads compressed-tensors, as llm-compressor writes it. A matrix [out, in] has these parts:
//
//   pack-quantized    weight_packed i32 [out, in / n], rounded up: signed codes of 2 to 8 bits, plus 2^(bits - 1). A
//                     word has n = 32 / bits codes, rounded down, from its low bits on. Versions from 2026 on leave no
//                     gaps: i32 [out, in * bits / 32], rounded up
//                     weight_shape [2]: out, in
//                     weight_scale [out, groups]
//                     weight_zero_point, if there are zero points: i32 [out / n, groups], rounded up, packed like codes
//                     but along columns, also plus 2^(bits - 1); or signed numbers [out, groups]
//                     weight_g_idx i32 or i64 [in], the group of each column; -1 for all if neighbours share groups
//   int-quantized     weight i8 [out, in], weight_scale, weight_zero_point, weight_g_idx
//   float-quantized   weight f8 [out, in], weight_scale
//
// There are in / group_size groups, rounded up. Without groups, weight_scale has one number for each row ([out, 1]),
// one for the matrix, or, with strategy "block", one for each block of block_structure ([out / rows, in / columns],
// rounded up). Zero points that are not packed have the shape of weight_scale. If there is one scale for the matrix,
// each row may still have a zero point. value = (code - zero) * scale.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "schemes/make_tensors.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"
#include "views/strided.hpp"

namespace poise::schemes::compressed_tensors {
namespace {

constexpr std::string_view kMethod = "compressed-tensors";
constexpr std::array<std::string_view, 4> kPackedParts = {".weight_scale", ".weight_shape", ".weight_zero_point",
                                                          ".weight_g_idx"};
constexpr std::array<std::string_view, 3> kPlainParts = {".weight", ".weight_zero_point", ".weight_g_idx"};
constexpr std::array<unsigned, 1> kEight = {8};
constexpr std::array<unsigned, 7> kWidths = {2, 3, 4, 5, 6, 7, 8};
constexpr std::array<DType, 5> kPlainCodes = {DType::i8, DType::f8_e4m3, DType::f8_e5m2, DType::f8_e4m3fnuz,
                                              DType::f8_e5m2fnuz};

// Holds an entry of config_groups: `weights` describes how the weights of the modules `targets` are stored.
struct WeightGroup {
  const Attributes* weights;
  const ModuleList* targets;  // null: the entry does not name modules
};

// Returns the entries of `config_groups` in an object, with their names. Null has no entries.
std::vector<std::pair<std::string_view, const Attributes*>> list_groups(const Attributes* object) {
  std::vector<std::pair<std::string_view, const Attributes*>> found;
  const auto* map = get_member<Attributes>(object, "config_groups");
  if (map == nullptr) return found;
  for (const auto& [name, group] : *map) {
    if (const auto* keys = group.get_if<Attributes>()) found.emplace_back(name, keys);
  }
  return found;
}

std::vector<WeightGroup> list_weight_groups(const QuantizationConfig& config) {
  std::vector<WeightGroup> found;
  const ModuleLists& lists = config.lists();
  for (const auto& [name, group] : list_groups(&config.keys())) {
    const auto* weights = get_member<Attributes>(group, "weights");
    const auto targets = lists.targets.find(name);
    if (weights != nullptr) found.push_back({weights, targets == lists.targets.end() ? nullptr : &targets->second});
  }
  return found;
}

// Throws unsupported for rotations that a run would have to compute, such as those of inputs. Rotations of weights are
// already in the stored weights.
void require_offline_transforms(const QuantizationConfig& config) {
  constexpr std::array<std::string_view, 2> kOffline = {"weight_input", "weight_output"};
  for (const auto& [name, group] : list_groups(config.get_if<Attributes>("transform_config"))) {
    const auto* applied = get_member<Value::Array>(group, "apply");
    if (applied == nullptr) continue;
    for (const Value& place : *applied) {
      const auto* location = get_member<std::string>(place, "location");
      if (location != nullptr && std::ranges::find(kOffline, *location) != kOffline.end()) continue;
      throw Error(ErrorKind::unsupported,
                  fmt::format("quantization_config: transform_config: {}: location is {}, only {} are supported", name,
                              location == nullptr ? "missing" : *location, fmt::join(kOffline, " and ")));
    }
  }
}

// Returns all formats that the configuration names: its own, and those of the entries of config_groups.
std::set<std::string> list_formats(const QuantizationConfig& config) {
  std::set<std::string> formats;
  if (const auto format = config.read_text("format")) formats.insert(*format);
  for (const auto& [name, group] : list_groups(&config.keys())) {
    if (const auto* format = get_member<std::string>(group, "format")) formats.insert(*format);
  }
  return formats;
}

void require_known_variant(const QuantizationConfig& config) {
  constexpr std::array kKnown = std::to_array<std::string_view>(
      {"pack-quantized", "int-quantized", "float-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized",
       "mxfp8-quantized", "naive-quantized", "mixed-precision", "dense"});
  for (const std::string& format : list_formats(config)) {
    if (std::ranges::find(kKnown, format) == kKnown.end())
      throw Error(ErrorKind::unsupported, fmt::format("quantization_config: format is {}, only {} are supported",
                                                      format, fmt::join(kKnown, ", ")));
  }
  require_offline_transforms(config);
  (void)config.lists();
  const auto* sparsity = config.get_if<Attributes>("sparsity_config");
  const Value* format = sparsity == nullptr ? nullptr : sparsity->find("format");
  if (format != nullptr && *format != Value("dense") && *format != Value())
    throw Error(
        ErrorKind::unsupported,
        fmt::format("quantization_config: sparsity_config: format is {}, only dense is supported", to_json(*format)));
}

ModuleList::Match match_target(const WeightGroup& group, const std::string& module) {
  return group.targets == nullptr ? ModuleList::Match() : group.targets->match(module);
}

using Descriptions = std::vector<const Attributes*>;  // WeightGroup::weights of some groups

// Returns the description of the group that names the matrix best, by the rules of the library compressed-tensors. Only
// groups whose num_bits is in `widths` count. Returns several descriptions if several groups have the best target, and
// those of all groups that count if none of them names the matrix.
Descriptions find_descriptions(const MatrixParts& matrix, const QuantizationConfig& config,
                               std::span<const unsigned> widths) {
  Descriptions found;
  ModuleList::Match best;
  for (const WeightGroup& group : list_weight_groups(config)) {
    const Value* number = group.weights->find("num_bits");
    const auto has_bits = [&](unsigned bits) { return *number == Value(std::uint64_t{bits}); };
    if (number == nullptr || !std::ranges::any_of(widths, has_bits)) continue;
    const ModuleList::Match its = match_target(group, matrix.name());
    const bool is_better = its.naming != best.naming ? its.naming > best.naming : its.target < best.target;
    if (is_better) found.clear();
    if (is_better || found.empty()) best = its;
    if (its.naming == best.naming && its.target == best.target) found.push_back(group.weights);
  }
  return found;
}

// Returns the number of bits of a code. `widths` has the numbers that fit the count of words. There may be several,
// such as 7 and 8, or 3 and 4 in few columns. The key num_bits decides. If no group has it, 2, 4 and 8 come before
// other numbers. Returns 0 if no number is left. Throws unsupported if several are left.
unsigned find_code_bits(const MatrixParts& matrix, const QuantizationConfig& config, std::span<const unsigned> widths) {
  std::set<unsigned> found;
  for (const Attributes* weights : find_descriptions(matrix, config, widths))
    found.insert(static_cast<unsigned>(*weights->get_if<std::uint64_t>("num_bits")));
  const bool states_bits = std::ranges::any_of(list_weight_groups(config), [](const WeightGroup& group) {
    const Value* number = group.weights->find("num_bits");
    return number != nullptr && *number != Value();
  });
  if (!states_bits) {
    for (const unsigned bits : widths) {
      if (std::has_single_bit(bits)) found.insert(bits);  // the usual widths
    }
    if (found.empty()) found.insert(widths.begin(), widths.end());
  }
  if (found.empty()) return 0;
  if (found.size() > 1) {
    throw Error(ErrorKind::unsupported,
                fmt::format("matrix {}: its codes may have {} bits, and quantization_config does not state which: it "
                            "has to name the matrix, or give num_bits for all",
                            matrix.name(), fmt::join(found, " or ")));
  }
  return *found.begin();
}

// Returns the grid of blocks from the first group with the strategy "block" whose blocks fit the shape of the scales;
// std::nullopt if there is none. Throws what read_sides() throws.
std::optional<BlockGrid> find_block_grid(const Shape& scales, const Shape& shape, const QuantizationConfig& config) {
  for (const WeightGroup& group : list_weight_groups(config)) {
    const Value* strategy = group.weights->find("strategy");
    if (strategy == nullptr || *strategy != Value("block")) continue;
    const auto sides = read_sides(group.weights->find("block_structure"), "block_structure");
    const BlockGrid grid = {ceil_div(shape[0], sides[0]), ceil_div(shape[1], sides[1]), sides[0], sides[1]};
    if (scales == Shape{grid.rows, grid.columns}) return grid;
  }
  return std::nullopt;
}

// Returns group_size if the strategy is "group" or missing; 0 for another strategy, and if group_size is missing or
// negative.
std::uint64_t find_group_columns(const Attributes& weights) {
  const Value* strategy = weights.find("strategy");
  if (strategy != nullptr && *strategy != Value() && *strategy != Value("group")) return 0;
  const auto* number = get_member<std::uint64_t>(&weights, "group_size");
  return number == nullptr ? 0 : *number;
}

// Returns the grid of groups along rows (the last of a row may be shorter) if the configuration describes groups that
// fit the scales. Throws invalid_file if all descriptions have groups and none fits, unsupported if several fit.
std::optional<BlockGrid> find_group_grid(const MatrixParts& matrix, const Tensor& scales, const Shape& shape,
                                         const Descriptions& described) {
  std::set<std::uint64_t> sizes;
  std::set<std::uint64_t> fitting;
  for (const Attributes* weights : described) {
    const std::uint64_t size = std::min(find_group_columns(*weights), shape[1]);
    sizes.insert(size);
    if (size != 0 && scales.shape == Shape{shape[0], ceil_div(shape[1], size)}) fitting.insert(size);
  }
  if (fitting.size() > 1) {
    throw Error(ErrorKind::unsupported,
                fmt::format("matrix {}: its groups may have {} columns, and quantization_config does not state which",
                            matrix.name(), fmt::join(fitting, " or ")));
  }
  if (fitting.empty()) {
    if (sizes.empty() || sizes.contains(0)) return std::nullopt;
    matrix.fail(
        fmt::format("the shape of {} is {}, but quantization_config states groups of {} columns, for {} rows of {}",
                    scales.name, to_string(scales.shape), fmt::join(sizes, " or "), shape[0], shape[1]));
  }
  return BlockGrid{shape[0], scales.shape[1], 1, *fitting.begin()};
}

// Returns the grid of the stored scales. Its blocks are groups of neighbours in a row, the whole matrix, blocks of the
// configuration, or rows. Throws invalid_file if the shape of the scales is that of none of these.
BlockGrid find_scale_grid(const MatrixParts& matrix, const Tensor& scales, const Shape& shape,
                          const QuantizationConfig& config, const Descriptions& described) {
  if (shape[0] == 0 || shape[1] == 0) matrix.fail("it has no elements");
  if (const auto grid = find_group_grid(matrix, scales, shape, described)) return *grid;
  if (scales.elements() == 1) return {1, 1, shape[0], shape[1]};
  if (const auto grid = find_block_grid(scales.shape, shape, config)) return *grid;
  const bool each_row = scales.shape == Shape{shape[0]};
  const bool has_rows = scales.shape.size() == 2 && scales.shape[0] == shape[0];
  const std::uint64_t groups = each_row ? 1 : has_rows ? scales.shape[1] : 0;
  if (groups == 0 || shape[1] % groups != 0) {
    matrix.fail(fmt::format(
        "the shape of {} is {}, expected one scale, equal groups of the {} columns for each of {} rows, or the "
        "blocks of quantization_config",
        scales.name, to_string(scales.shape), shape[1], shape[0]));
  }
  return {shape[0], groups, 1, shape[1] / groups};
}

// Holds a scale for each group of neighbours in a row. All groups have one size, so there may be more groups than the
// file has scales.
struct Scales {
  BlockGrid grid;  // the grid of the stored scales
  EvenGroups groups = {};
  Shape shape;  // of `part`: [rows, groups]
  Part part;
};

// Repeats the stored numbers of `grid`, so that there is one for each group of `scales`.
BlobPtr spread_numbers(BlobPtr numbers, DType type, const BlockGrid& grid, const Scales& scales) {
  if (Shape{grid.rows, grid.columns} == scales.shape) return numbers;
  const std::uint64_t columns = scales.shape[1] * scales.groups.size;
  const std::uint64_t across = std::min(grid.across, columns) / scales.groups.size;
  return repeat_blocks(std::move(numbers), type, {grid.rows, grid.columns, grid.down, across}, scales.shape);
}

Scales read_scales(const MatrixParts& matrix, const Shape& shape, const QuantizationConfig& config,
                   const Descriptions& described) {
  const Tensor& scales = matrix.require(".weight_scale");
  const Part& data = matrix.require_data(scales, kScaleTypes);
  Scales result;
  result.grid = find_scale_grid(matrix, scales, shape, config, described);
  result.groups = split_evenly(shape[1], std::min(result.grid.across, shape[1]));
  result.shape = {shape[0], shape[1] / result.groups.size};
  result.part = make_part("scales", data.dtype, spread_numbers(data.blob, data.dtype, result.grid, result));
  return result;
}

// Describes how neighbours along an axis share words of 32 bits.
struct Packing {
  unsigned bits;
  bool has_gaps;  // true if a word may have unused bits, because no code is split between two words

  std::uint64_t count_words(std::uint64_t codes) const {
    return has_gaps ? ceil_div(codes, 32 / bits) : ceil_div(codes * bits, 32);
  }
  std::uint64_t per_word() const { return has_gaps ? 32 / bits : 0; }
};

// Converts signed zero points, which are not packed, to those of unsigned codes: adds `middle`, which is 2^(bits - 1).
// Reading throws unsupported for a sum that is not a whole number from -kMost to kMost.
BlobPtr make_plain_zeros(const MatrixParts& matrix, const Tensor& zeros, float middle) {
  constexpr float kMost = 2048;  // float16 has all whole numbers up to here
  const BlobPtr numbers = make_f32_numbers(zeros);
  const std::string name = fmt::format("matrix {}: {}", matrix.name(), zeros.name);
  const auto make = [=](std::uint64_t first, std::span<float> out) {
    numbers->read(first * sizeof(float), std::as_writable_bytes(out));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const float zero = out[i] + middle;
      if (std::abs(zero) > kMost || zero != std::floor(zero))
        throw Error(
            ErrorKind::unsupported,
            fmt::format("{}: element {} is {}, expected a whole number that a code can have", name, first + i, out[i]));
      out[i] = zero;
    }
  };
  return make_cast_blob(name, make_computed_f32(zeros.elements(), make), DType::f32, zeros.elements(), DType::f16);
}

// Returns the zero point of each group, for unsigned codes, as float16. If weight_zero_point is missing, each is
// 2^(bits - 1); if all descriptions have "symmetric": false, throws invalid_file instead.
Part read_zeros(const MatrixParts& matrix, const Scales& scales, const Packing& packing,
                const Descriptions& described) {
  const unsigned middle = 1U << (packing.bits - 1);
  const bool needed = !described.empty() && std::ranges::all_of(described, [](const Attributes* weights) {
    return weights->find("symmetric") != nullptr && *weights->find("symmetric") == Value(false);
  });
  const Tensor* zeros = needed ? &matrix.require(".weight_zero_point") : matrix.find(".weight_zero_point");
  if (zeros == nullptr)
    return make_part("zeros", DType::f16, repeat_f16(static_cast<float>(middle), scales.shape[0] * scales.shape[1]));
  const Part& data =
      matrix.require_data(*zeros, {DType::i8, DType::i16, DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32});
  const BlockGrid each_group = {scales.shape[0], scales.shape[1], 1, scales.groups.size};
  const BlockGrid one = {1, 1, scales.shape[0], scales.shape[1] * scales.groups.size};
  BlockGrid grid = scales.grid;
  // If there is one scale for the matrix, each row may still have its own zero point.
  const BlockGrid& packed_grid = grid.rows * grid.columns == 1 ? each_group : grid;
  const Shape packed = {packing.count_words(packed_grid.rows), packed_grid.columns};
  if (data.dtype == DType::i32 && zeros->shape == packed) {
    const PackedCodes codes = {.words = data.blob,
                               .rows = packed_grid.rows,
                               .columns = packed_grid.columns,
                               .bits = packing.bits,
                               .along = PackedCodes::Along::columns,
                               .per_word = packing.per_word()};
    return make_part("zeros", DType::f16,
                     spread_numbers(make_code_numbers_blob(codes, MatrixOrder::same), DType::f16, packed_grid, scales));
  }
  if (zeros->elements() == each_group.rows * each_group.columns) grid = each_group;
  if (zeros->elements() == 1) grid = one;
  if (zeros->elements() != grid.rows * grid.columns)
    matrix.fail(fmt::format("the shape of {} is {}, expected {}{}", zeros->name, to_string(zeros->shape),
                            to_string(Shape{grid.rows, grid.columns}),
                            data.dtype == DType::i32 ? fmt::format(", or {} packed", to_string(packed)) : ""));
  BlobPtr numbers =
      data.dtype == DType::i8 && packing.bits == 8
          ? make_code_numbers_blob(
                {.words = data.blob, .rows = grid.rows, .columns = grid.columns, .bits = packing.bits, .add = middle},
                MatrixOrder::same)
          : make_plain_zeros(matrix, *zeros, static_cast<float>(middle));
  return make_part("zeros", DType::f16, spread_numbers(std::move(numbers), DType::f16, grid, scales));
}

// Returns GroupParts::index; null if neighbours share groups, which the file may also state by -1 for all columns.
BlobPtr read_index(const MatrixParts& matrix, std::uint64_t columns, const EvenGroups& groups) {
  constexpr std::string_view kIndex = ".weight_g_idx";
  const Tensor* index = matrix.find(kIndex);
  if (index == nullptr) return nullptr;
  const Part& data = matrix.require_data(*index, {DType::i32, DType::i64});
  matrix.require_shape(*index, {columns});
  const LoadedBlob loaded(data.blob);
  if (std::ranges::all_of(loaded.bytes(), [](std::byte byte) { return byte == std::byte{0xff}; })) return nullptr;
  return make_group_index(matrix, kIndex, columns, groups);
}

Shape read_shape(const MatrixParts& matrix, const Tensor& packed) {
  const Tensor& tensor = matrix.require(".weight_shape");
  const Part& data = matrix.require_data(tensor, {DType::i64, DType::i32});
  matrix.require_shape(tensor, {2});
  std::array<std::int64_t, 2> numbers = {};
  if (data.dtype == DType::i64) {
    data.blob->read(0, std::as_writable_bytes(std::span(numbers)));
  } else {
    std::array<std::int32_t, 2> narrow = {};
    data.blob->read(0, std::as_writable_bytes(std::span(narrow)));
    std::ranges::copy(narrow, numbers.begin());
  }
  if (numbers[0] < 1 || numbers[1] < 1 || numbers[1] > INT32_MAX ||
      static_cast<std::uint64_t>(numbers[0]) != packed.shape[0]) {
    matrix.fail(fmt::format("{} is [{}, {}], which {} with shape {} cannot hold", tensor.name, numbers[0], numbers[1],
                            packed.name, to_string(packed.shape)));
  }
  return {static_cast<std::uint64_t>(numbers[0]), static_cast<std::uint64_t>(numbers[1])};
}

struct PackedCodesInfo {
  const Part& words;
  Shape shape;  // of the matrix
  Packing packing;
};

PackedCodesInfo read_packing(const MatrixParts& matrix, const QuantizationConfig& config) {
  const Tensor& packed = matrix.require(".weight_packed");
  const Part& words = matrix.require_data(packed, kWordTypes);
  matrix.require_rank(packed, 2);
  const Shape shape = read_shape(matrix, packed);
  std::vector<unsigned> widths;
  for (const unsigned width : kWidths) {
    if (Packing{width, true}.count_words(shape[1]) == packed.shape[1] ||
        Packing{width, false}.count_words(shape[1]) == packed.shape[1])
      widths.push_back(width);
  }
  const unsigned bits = find_code_bits(matrix, config, widths);
  if (bits == 0) {
    matrix.fail(
        fmt::format("{} has rows of {} words for {} columns, expected codes of 2 to 8 bits, as num_bits in "
                    "quantization_config states",
                    packed.name, packed.shape[1], shape[1]));
  }
  return {words, shape, {bits, Packing{bits, true}.count_words(shape[1]) == packed.shape[1]}};
}

Tensor fold_packed(const MatrixParts& matrix, const QuantizationConfig& config) {
  require_format(matrix, config, "pack-quantized");
  const auto [words, shape, packing] = read_packing(matrix, config);
  const Descriptions described = find_descriptions(matrix, config, std::span(&packing.bits, 1));
  const Scales scales = read_scales(matrix, shape, config, described);
  const unsigned stored = round_bits(packing.bits);
  return make_group_tensor(matrix, {.shape = shape,
                                    .bits = stored,
                                    .group_size = scales.groups.size,
                                    .codes = make_codes_blob({.words = words.blob,
                                                              .rows = shape[0],
                                                              .columns = shape[1],
                                                              .bits = packing.bits,
                                                              .row_bytes = words.blob->size() / shape[0],
                                                              .per_word = packing.per_word()},
                                                             MatrixOrder::same, stored),
                                    .scales = scales.part,
                                    .zeros = read_zeros(matrix, scales, packing, described),
                                    .index = read_index(matrix, shape[1], scales.groups)});
}

Tensor fold_int8(const MatrixParts& matrix, const QuantizationConfig& config) {
  require_format(matrix, config, "int-quantized");
  const Tensor& weight = matrix.require(".weight");
  matrix.require_data(weight, {DType::i8});
  matrix.require_rank(weight, 2);
  const Descriptions described = find_descriptions(matrix, config, kEight);
  const Scales scales = read_scales(matrix, weight.shape, config, described);
  return make_group_tensor(matrix, {.shape = weight.shape,
                                    .bits = 8,
                                    .group_size = scales.groups.size,
                                    .codes = remove_sign(weight),
                                    .scales = scales.part,
                                    .zeros = read_zeros(matrix, scales, {8, true}, described),
                                    .index = read_index(matrix, weight.shape[1], scales.groups)});
}

Tensor fold_floats(const MatrixParts& matrix, const QuantizationConfig& config) {
  matrix.require(".weight");
  require_format(matrix, config, "float-quantized");
  if (matrix.find(".weight_zero_point") != nullptr) matrix.fail("floating-point numbers have no zero point");
  const F8Matrix f8(matrix, ".weight_scale");
  const BlockGrid grid =
      find_scale_grid(matrix, f8.scales, f8.weight.shape, config, find_descriptions(matrix, config, kEight));
  return f8.make_tensor(grid.down, grid.across);
}

// Returns true if weight_packed has codes in words. In NVFP4 and MXFP4 it has bytes.
bool is_packed(const MatrixParts& matrix) {
  const Tensor* weight = matrix.find(".weight_packed");
  return matrix.find(".weight_global_scale") == nullptr && !weight->parts.empty() &&
         weight->parts[0].dtype != DType::u8;
}
bool is_plain(const MatrixParts& matrix) {
  return matrix.find(".weight_packed") == nullptr && matrix.find(".weight_shape") == nullptr &&
         matrix.find(".weight_global_scale") == nullptr;
}
bool is_int8(const MatrixParts& matrix) {
  const Tensor* weight = matrix.find(".weight");
  return is_plain(matrix) && weight != nullptr && weight->parts.size() == 1 && weight->parts[0].dtype == DType::i8;
}

// Adds a warning about these matrices, if there are any. The first name and the number of the others replace {} in
// `format`.
void add_warning(std::vector<std::string>& warnings, const std::vector<std::string_view>& names,
                 std::string_view format) {
  if (!names.empty()) warnings.push_back(fmt::format(fmt::runtime(format), list_names(names, 1)));
}

}  // namespace

void require_format(const MatrixParts& matrix, const QuantizationConfig& config, std::string_view format) {
  const std::set<std::string> formats = list_formats(config);
  const auto is_named = [&](std::string_view name) { return formats.contains(std::string(name)); };
  if (formats.empty() || is_named(format) || is_named("naive-quantized")) return;
  matrix.fail(fmt::format("it is stored as {}, but quantization_config states {}", format, fmt::join(formats, ", ")));
}

std::vector<std::string> list_name_warnings(const Model&, const QuantizationConfig& config,
                                            std::span<const std::string> matrices) {
  const std::vector<WeightGroup> groups = list_weight_groups(config);
  const auto& ignored = config.lists().ignored;
  const auto is_ignored = [&](const std::string& module) {
    return ignored && ignored->match(module).naming >= Naming::by_class;
  };
  const auto is_left_out = [&](const std::string& module) {
    return !groups.empty() && std::ranges::all_of(groups, [&](const WeightGroup& group) {
      return group.targets != nullptr && match_target(group, module).naming == Naming::none;
    });
  };
  std::vector<std::string> warnings;
  const auto warn_if = [&](const auto& holds, std::string_view format) {
    std::vector<std::string_view> names;
    std::ranges::copy_if(matrices, std::back_inserter(names), holds);
    add_warning(warnings, names, format);
  };
  warn_if(is_ignored,
          "quantization_config: ignore lists matrix {} as not quantized, but there are scales next to its codes: its "
          "parts are used");
  warn_if(is_left_out,
          "quantization_config: no target of config_groups names matrix {}, but there are scales next to its codes: "
          "its parts are used");
  return warnings;
}

namespace {

bool is_ordered(const Attributes& weights) {
  const Value* order = weights.find("actorder");
  return order != nullptr && (*order == Value("group") || *order == Value("dynamic") || *order == Value(true));
}

bool is_symmetric(const Attributes& weights) {
  const auto* symmetric = weights.get_if<bool>("symmetric");
  return symmetric != nullptr && *symmetric;
}

// Returns warnings about matrices with parts that contradict their description in the configuration, and those of
// list_name_warnings().
std::vector<std::string> list_integer_warnings(const Model& model, const QuantizationConfig& config,
                                               std::span<const std::string> matrices) {
  std::vector<std::string_view> without_index;
  std::vector<std::string_view> with_index;
  std::vector<std::string_view> with_zeros;
  const bool states_order = std::ranges::any_of(list_weight_groups(config),
                                                [](const WeightGroup& group) { return is_ordered(*group.weights); });
  for (const std::string& name : matrices) {
    const bool packed = model.find(name + ".weight_packed") != nullptr;
    const MatrixParts matrix(model, name, packed ? kIntegers : kInt8);
    const bool has_index = matrix.find(".weight_g_idx") != nullptr;
    const bool has_zeros = matrix.find(".weight_zero_point") != nullptr;
    if (!states_order && !has_index && !has_zeros) continue;
    const unsigned bits = packed ? read_packing(matrix, config).packing.bits : 8;
    const Descriptions described = find_descriptions(matrix, config, std::span(&bits, 1));
    if (described.empty()) continue;
    const auto count = [&](bool (*holds)(const Attributes&)) {
      return std::ranges::count_if(described, [&](const Attributes* weights) { return holds(*weights); });
    };
    const auto all = static_cast<std::ptrdiff_t>(described.size());
    const Shape& scales = matrix.require(".weight_scale").shape;
    if (!has_index && count(is_ordered) == all && scales.size() == 2 && scales[1] > 1) without_index.emplace_back(name);
    const bool is_denied = has_index && count(is_ordered) == 0;
    if (!is_denied && !(has_zeros && count(is_symmetric) == all)) continue;
    const Tensor tensor = packed ? fold_packed(matrix, config) : fold_int8(matrix, config);
    if (is_denied && tensor.part("group_index") != nullptr) with_index.emplace_back(name);
    if (!has_zeros || count(is_symmetric) != all) continue;
    const auto middle = static_cast<float>(1U << (bits - 1));
    if (std::ranges::any_of(read_f16_sample(tensor.require("zeros").blob), [&](float zero) { return zero != middle; }))
      with_zeros.emplace_back(name);
  }
  std::vector<std::string> warnings = list_name_warnings(model, config, matrices);
  add_warning(warnings, without_index,
              "actorder is group, but matrix {} has no weight_g_idx: its groups are read as neighbouring columns");
  add_warning(warnings, with_index, "actorder is not group, but weight_g_idx of matrix {} orders columns: it is used");
  add_warning(warnings, with_zeros, "symmetric is true, but matrix {} has other zero points than 0: they are used");
  return warnings;
}

}  // namespace

const QuantizationScheme kIntegers = {
    .title = "compressed-tensors pack-quantized",
    .method = kMethod,
    .require_known_variant = require_known_variant,
    .marker = ".weight_packed",
    .parts = kPackedParts,
    .left_out = kNotOfWeights,
    .holds = is_packed,
    .list_warnings = list_integer_warnings,
    .fold = fold_packed,
};

const QuantizationScheme kInt8 = {
    .title = "compressed-tensors int-quantized",
    .method = kMethod,
    .marker = ".weight_scale",
    .parts = kPlainParts,
    .left_out = kNotOfWeights,
    .holds = is_int8,
    .code_types = kPlainCodes,
    .list_warnings = list_integer_warnings,
    .fold = fold_int8,
};

const QuantizationScheme kFloats = {
    .title = "compressed-tensors float-quantized",
    .method = kMethod,
    .marker = ".weight_scale",
    .parts = kPlainParts,
    .left_out = kNotOfWeights,
    .holds = is_plain,
    .code_types = kPlainCodes,
    .list_warnings = list_name_warnings,
    .fold = fold_floats,
};

}  // namespace poise::schemes::compressed_tensors
