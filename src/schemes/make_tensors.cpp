#include "schemes/make_tensors.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/little_endian.hpp"
#include "bytes/short_text.hpp"
#include "numeric/float_formats.hpp"
#include "numeric/integers.hpp"
#include "patterns/glob.hpp"
#include "tensor/group_scheme.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"
#include "views/groups.hpp"
#include "views/layout_type.hpp"
#include "views/mx.hpp"
#include "views/strided.hpp"

namespace poise::schemes {
namespace {

class ComputedBlob final : public FloatBlob {
 public:
  ComputedBlob(std::uint64_t elements, MakeNumbers make) : FloatBlob(elements), make_(std::move(make)) {}

 protected:
  void compute_elements(std::uint64_t first, std::span<float> out) const override { make_(first, out); }

 private:
  MakeNumbers make_;
};

constexpr std::string_view kMixed = "MIXED_PRECISION";

// Holds a list of modules: names and shell patterns. Ignores values other than texts. Requires: the list outlives this.
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

  // Returns true if matching could take long: at worst, it compares each byte of a pattern with each byte of a name.
  bool is_slow_to_match(std::span<const std::string> modules) const {
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
           std::ranges::any_of(patterns_, [&](std::string_view pattern) { return matches_glob(pattern, module); });
  }

 private:
  std::unordered_set<std::string_view> names_;
  std::vector<std::string_view> patterns_;
};

}  // namespace

std::string format_left_out_warning(std::string_view first, std::size_t count) {
  return fmt::format("tensor {}{} is left out: it scales activations, which Poise does not quantize", first,
                     format_more(count - 1));
}

void require_known_algorithm(const QuantizationConfig& config) {
  constexpr std::array<std::string_view, 6> kKnown = {
      "FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4", "W4A16_NVFP4", kMixed};
  const auto algorithm = config.read_text("quant_algo");
  if (algorithm && std::ranges::find(kKnown, *algorithm) == kKnown.end())
    throw Error(ErrorKind::unsupported, fmt::format("quantization_config: quant_algo is {}, only {} are supported",
                                                    *algorithm, fmt::join(kKnown, ", ")));
}

std::vector<std::string> list_algorithm_warnings(const QuantizationConfig& config,
                                                 std::span<const std::string> matrices,
                                                 std::span<const std::string_view> algorithms) {
  std::vector<std::string> warnings;
  const auto algorithm = config.read_text("quant_algo");
  if (algorithm && *algorithm != kMixed && std::ranges::find(algorithms, *algorithm) == algorithms.end())
    warnings.push_back(fmt::format(
        "quant_algo is {}, but matrix {}{} is stored as {}: its parts are used", *algorithm, matrices.front(),
        matrices.size() == 1 ? "" : fmt::format(", with {} more,", matrices.size() - 1), algorithms.front()));
  for (const std::string_view key : {"exclude_modules", "ignore", "exclude"}) {
    const Value* value = config.keys().find(key);
    const auto* patterns = value == nullptr ? nullptr : value->get_if<Value::Array>();
    if (patterns == nullptr) continue;
    const ListedModules modules(*patterns);
    if (modules.is_slow_to_match(matrices)) {
      warnings.push_back(fmt::format("quantization_config: {} has too many patterns to compare with {} matrices", key,
                                     matrices.size()));
      continue;
    }
    std::vector<std::string_view> named;
    std::ranges::copy_if(matrices, std::back_inserter(named),
                         [&](const std::string& matrix) { return modules.contains(matrix); });
    if (named.empty()) continue;
    warnings.push_back(
        fmt::format("quantization_config: {} lists matrix {} as not quantized, but there are scales next to its codes: "
                    "its parts are used",
                    key, list_names(named, 1)));
  }
  return warnings;
}

F8Matrix::F8Matrix(const MatrixParts& matrix, std::string_view scales_ending, std::initializer_list<DType> types)
    : weight(matrix.require(".weight")),
      data(matrix.require_data(weight, types)),
      scales(matrix.require(scales_ending)) {
  matrix.require_rank(weight, 2);
  matrix.require_data(scales, {DType::f32, DType::bf16, DType::f16, DType::f8_e8m0});
}

Tensor F8Matrix::make_tensor(std::uint64_t rows, std::uint64_t columns) const {
  return make_block_scaled_tensor(weight.shape, data.dtype, data.blob, cast_to_f32(scales), rows, columns);
}

Tensor make_scaled_f8(const MatrixParts& matrix, std::string_view scales_ending) {
  const F8Matrix f8(matrix, scales_ending);
  const std::uint64_t rows = f8.weight.shape[0];
  const std::uint64_t columns = f8.weight.shape[1];
  const Shape& shape = f8.scales.shape;
  const bool each_row = shape == Shape{rows, 1} || (shape == Shape{rows} && rows != 1);
  if (!each_row && f8.scales.elements() != 1)
    matrix.fail(fmt::format("the shape of {} is {}, expected one number, or one for each of {} rows", f8.scales.name,
                            to_string(shape), rows));
  if (rows == 0 || columns == 0) matrix.fail(fmt::format("{} has no elements", f8.weight.name));
  return f8.make_tensor(each_row ? 1 : rows, columns);
}

Part make_part(std::string_view role, DType dtype, BlobPtr blob) {
  return {.role = std::string(role), .dtype = dtype, .blob = std::move(blob)};
}

BlobPtr cast_to_f32(const Tensor& tensor) { return make_dense_blob(tensor, DType::f32); }

BlobPtr make_f32_numbers(const Tensor& tensor) {
  const Part& data = tensor.require("data");
  if (!is_integer(data.dtype)) return cast_to_f32(tensor);
  const BlobPtr integers = data.blob;
  return visit_integer(data.dtype, [&](auto zero) {
    using T = decltype(zero);
    return make_computed_f32(tensor.elements(), [integers](std::uint64_t first, std::span<float> out) {
      std::vector<std::byte> bytes(out.size() * sizeof(T));
      integers->read(first * sizeof(T), bytes);
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<float>(load_le<T>(bytes.data() + i * sizeof(T)));
    });
  });
}

BlobPtr transpose_data(const Tensor& matrix) {
  const Part& data = matrix.require("data");
  const unsigned item = info(data.dtype).bits / 8;
  const auto columns = static_cast<std::int64_t>(matrix.shape[1]);
  return make_strided_blob(data.blob, {.shape = {matrix.shape[1], matrix.shape[0]},
                                       .strides = {std::int64_t{item}, columns * item},
                                       .item_bytes = item});
}

BlobPtr make_computed_f32(std::uint64_t elements, MakeNumbers make) {
  return std::make_shared<ComputedBlob>(elements, std::move(make));
}

Part make_computed_part(const MatrixParts& matrix, std::string_view role, std::uint64_t elements,
                        std::initializer_list<const Tensor*> inputs, MakeNumbers make) {
  std::vector<Part> parts;
  for (const Tensor* input : inputs) parts.push_back(input->require("data"));
  return make_part(role, DType::f32,
                   add_overflow_checks(fmt::format("matrix {}: {}", matrix.name(), role),
                                       make_computed_f32(elements, std::move(make)), std::move(parts)));
}

float read_scalar(const Tensor& tensor) {
  float number = 0;
  cast_to_f32(tensor)->read(0, std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

std::vector<float> read_f16_sample(const BlobPtr& halves) {
  constexpr std::uint64_t kMost = 4096;
  std::vector<float> numbers(static_cast<std::size_t>(std::min(halves->size() / sizeof(std::uint16_t), kMost)));
  make_cast_blob("zero points", halves, DType::f16, numbers.size(), DType::f32)
      ->read(0, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

BlobPtr repeat_f16(float number, std::uint64_t count) {
  const std::uint16_t code = encode_f16(number);
  std::vector<std::byte> bytes = {static_cast<std::byte>(code & 0xffU), static_cast<std::byte>(code >> 8U)};
  return make_strided_blob(make_memory_blob(std::move(bytes), "zero point"),
                           {.shape = {count}, .strides = {0}, .item_bytes = 2});
}

Tensor make_group_tensor(const MatrixParts& matrix, GroupParts parts) {
  if (const std::uint64_t along = parts.shape[parts.axis]; parts.group_size == 0 || along % parts.group_size != 0) {
    matrix.fail(fmt::format("groups of {} do not divide its {} {}", parts.group_size, along,
                            parts.axis == 0 ? "rows" : "columns"));
  }
  Tensor tensor;
  tensor.name = matrix.name();
  tensor.shape = std::move(parts.shape);
  const unsigned per_word = 32 / parts.bits;
  const bool in_words = tensor.shape[1] % per_word == 0;
  const unsigned per_byte = 8 / parts.bits;
  tensor.attributes = {{"bits", std::uint64_t{parts.bits}}, {"group_size", parts.group_size}};
  if (parts.index == nullptr) {
    tensor.attributes.set("packing",
                          in_words ? fmt::format("{}_per_i32", per_word) : fmt::format("{}_per_u8", per_byte));
  } else {
    tensor.attributes.set("axis", std::uint64_t{parts.axis});
    tensor.attributes.set("packing", Attributes{{"word", in_words ? "u32" : "u8"},
                                                {"order", "lsb_first"},
                                                {"per_word", std::uint64_t{in_words ? per_word : per_byte}}});
    tensor.attributes.set("scale_form", parts.scales.dtype == DType::f32 ? "f32_factors" : "f16_factors");
    tensor.attributes.set("zero_point", Attributes{{"form", "tensor"}, {"packing", "plain"}});
  }
  const bool indexed = parts.index != nullptr;
  const DType word = indexed ? (in_words ? DType::u32 : DType::u8) : (in_words ? DType::i32 : DType::u8);
  tensor.parts.push_back(make_part(indexed ? "data" : "packed_weight", word, std::move(parts.codes)));
  tensor.parts.push_back(std::move(parts.scales));
  tensor.parts.push_back(std::move(parts.zeros));
  if (indexed) tensor.parts.push_back(make_part("group_index", DType::u32, std::move(parts.index)));
  tensor.layout =
      indexed ? make_indexed_groups_layout(tensor) : make_group_layout(read_group_scheme(tensor, GroupWords::zt1));
  check_parts(tensor);
  return tensor;
}

Tensor make_block_scaled_tensor(const Shape& shape, DType type, BlobPtr data, BlobPtr scales, std::uint64_t rows,
                                std::uint64_t columns) {
  Tensor tensor;
  tensor.shape = shape;
  tensor.attributes = make_block_scaled_attributes({rows, columns});
  tensor.parts.push_back(make_part("data", type, std::move(data)));
  tensor.parts.push_back(make_part("scales", DType::f32, std::move(scales)));
  tensor.layout = make_block_scaled_layout({rows, columns});
  check_parts(tensor);
  return tensor;
}

Tensor make_mx_tensor(const MatrixParts& matrix, const Shape& shape, const Part& numbers, const Tensor& exponents) {
  const Part& codes = matrix.require_data(exponents, {DType::u8, DType::f8_e8m0});
  if (element_count(shape).value_or(0) == 0) matrix.fail("it has no elements");
  if (shape.back() % kMxfp4Block != 0)
    matrix.fail(fmt::format("groups of {} do not divide its {} columns", kMxfp4Block, shape.back()));
  Shape groups = shape;
  groups.back() /= kMxfp4Block;
  matrix.require_shape(exponents, groups);
  if (numbers.dtype == DType::f4_e2m1) return make_mxfp4(matrix.name(), shape, numbers.blob, codes.blob);
  BlobPtr scales = make_cast_blob(exponents.name, codes.blob, DType::f8_e8m0, exponents.elements(), DType::f32);
  return make_block_scaled_tensor(shape, numbers.dtype, numbers.blob, std::move(scales), 1, kMxfp4Block);
}

Tensor make_packed_mxfp4_tensor(const MatrixParts& matrix, std::string_view codes, std::string_view exponents) {
  const Tensor& packed = matrix.require(codes);
  const Part& data = matrix.require_data(packed, {DType::u8});
  matrix.require_rank(packed, 2);
  return make_mx_tensor(matrix, {packed.shape[0], packed.shape[1] * 2}, make_part("data", DType::f4_e2m1, data.blob),
                        matrix.require(exponents));
}

EvenGroups split_evenly(std::uint64_t columns, std::uint64_t wanted) {
  const std::uint64_t size = std::gcd(wanted, columns);
  return {wanted, ceil_div(columns, wanted), size, wanted / size};
}

BlobPtr repeat_blocks(BlobPtr numbers, DType type, const BlockGrid& grid, const Shape& shape) {
  const unsigned item = info(type).bits / 8;
  const std::uint64_t down = std::min(grid.down, shape[0]);
  const std::uint64_t across = std::min(grid.across, shape[1]);
  const auto row_bytes = static_cast<std::int64_t>(grid.columns * item);
  BlobPtr whole = make_strided_blob(std::move(numbers), {.shape = {grid.rows, down, grid.columns, across},
                                                         .strides = {row_bytes, 0, std::int64_t{item}, 0},
                                                         .item_bytes = item});
  const auto repeated_bytes = row_bytes * static_cast<std::int64_t>(across);
  return make_strided_blob(std::move(whole),
                           {.shape = shape, .strides = {repeated_bytes, std::int64_t{item}}, .item_bytes = item});
}

BlobPtr make_group_index(const MatrixParts& matrix, std::string_view ending, std::uint64_t columns,
                         const EvenGroups& groups) {
  const Tensor* tensor = matrix.find(ending);
  if (tensor == nullptr) return nullptr;
  const Part& data = matrix.require_data(*tensor, {DType::i32, DType::i64});
  matrix.require_shape(*tensor, {columns});
  if (columns > UINT32_MAX)
    matrix.fail(fmt::format("{} has {} columns, at most {} are supported", tensor->name, columns, UINT32_MAX));
  const LoadedBlob loaded(data.blob);
  std::vector<std::uint32_t> index(static_cast<std::size_t>(columns));
  bool is_ascending = true;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::int64_t group = data.dtype == DType::i64 ? loaded.at<std::int64_t>(i) : loaded.at<std::int32_t>(i);
    if (group < 0 || static_cast<std::uint64_t>(group) >= groups.count)
      matrix.fail(fmt::format("{}: element {} is {}, expected less than {}, the number of groups", tensor->name, i,
                              group, groups.count));
    index[i] = static_cast<std::uint32_t>(group);
    is_ascending = is_ascending && index[i] == i / groups.wanted;
  }
  if (is_ascending) return nullptr;
  if (groups.times == 1 && data.dtype == DType::i32) return data.blob;
  for (std::uint32_t& group : index) group *= static_cast<std::uint32_t>(groups.times);
  const auto bytes = std::as_bytes(std::span(index));
  return make_memory_blob({bytes.begin(), bytes.end()}, tensor->name);
}

std::array<std::uint64_t, 2> read_sides(const Value* value, std::string_view key) {
  std::array<std::uint64_t, 2> sides = {};
  if (const auto* text = value == nullptr ? nullptr : value->get_if<std::string>()) {
    const char* const end = text->data() + text->size();
    const auto [middle, first] = std::from_chars(text->data(), end, sides[0]);
    const bool goes_on = first == std::errc() && middle != end && *middle == 'x';
    const auto [last, second] = std::from_chars(goes_on ? middle + 1 : end, end, sides[1]);
    if (!goes_on || second != std::errc() || last != end) sides = {};
  } else if (const auto* list = value == nullptr ? nullptr : value->get_if<Value::Array>();
             list != nullptr && list->size() == sides.size()) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      if (const auto* number = (*list)[i].get_if<std::uint64_t>()) sides[i] = *number;
    }
  }
  if (sides[0] == 0 || sides[1] == 0)
    throw Error(ErrorKind::invalid_file, fmt::format("quantization_config: {}: expected two positive integers", key));
  return sides;
}

Tensor make_row_scaled_i8(const MatrixParts& matrix, const Tensor& codes, BlobPtr scales) {
  return make_group_tensor(matrix, {.shape = codes.shape,
                                    .bits = 8,
                                    .group_size = codes.shape[1],
                                    .codes = remove_sign(codes),
                                    .scales = make_part("scales", DType::f32, std::move(scales)),
                                    .zeros = make_part("zeros", DType::f16, repeat_f16(128, codes.shape[0]))});
}

BlobPtr remove_sign(const Tensor& codes) {
  return make_codes_blob(
      {.words = codes.require("data").blob, .rows = codes.shape[0], .columns = codes.shape[1], .bits = 8, .add = 128},
      MatrixOrder::same, 8);
}

unsigned round_bits(unsigned bits) { return bits <= 2 ? 2 : bits <= 4 ? 4 : 8; }

}  // namespace poise::schemes
