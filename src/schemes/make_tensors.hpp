// Schemes call these functions to make folded tensors from the parts of a matrix.
#pragma once

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include <poise/tensor.hpp>

#include "schemes/scheme.hpp"
#include "views/integer_blobs.hpp"

namespace poise::schemes {

// Tensors with these suffixes do not concern weights: they describe how inputs, outputs, attention and the cache of
// keys and values are quantized.
inline constexpr std::array kNotOfWeights = std::to_array<std::string_view>(
    {".input_scale",      ".input_scale_ub", ".input_zero_point",  ".input_global_scale",
     ".activation_scale", ".output_scale",   ".output_zero_point", ".output_global_scale",
     ".kv_scale",         ".q_scale",        ".q_zero_point",      ".q_global_scale",
     ".k_scale",          ".k_zero_point",   ".k_global_scale",    ".v_scale",
     ".v_zero_point",     ".v_global_scale", ".prob_scale",        ".prob_output_scale",
     ".prob_zero_point",  ".scale_input"});

// Returns the warning that `count` tensors with scales of activations, the first one called `first`, are left out.
std::string format_left_out_warning(std::string_view first, std::size_t count);

// Throws unsupported (without path) for a quant_algo of ModelOpt that no scheme reads.
void require_known_algorithm(const QuantizationConfig& config);

// Returns warnings for QuantizationScheme::list_warnings: if quant_algo is neither one of these `algorithms` nor
// MIXED_PRECISION, and if a list of patterns (exclude_modules, ignore or exclude) names a matrix as not quantized, or
// is too long to check. Requires: there is a matrix.
std::vector<std::string> list_algorithm_warnings(const QuantizationConfig& config,
                                                 std::span<const std::string> matrices,
                                                 std::span<const std::string_view> algorithms);

namespace awq {

// Describes codes of four bits in words along the rows of a transposed matrix.
struct WordParts {
  std::string_view weight;       // the ending of i32 [in, out / 8]
  std::string_view scales;       // [groups, out]
  std::string_view zeros;        // i32 [groups, out / 8]
  std::uint64_t group_size = 0;  // 0: a row is one group
  bool in_order = false;         // codes follow each other from the low bits on, not in AWQ's order
  unsigned add = 0;              // added to codes and zero points, modulo 16
};
Tensor fold_words(const MatrixParts& matrix, const WordParts& parts);

}  // namespace awq

namespace compressed_tensors {

// Returns warnings for QuantizationScheme::list_warnings about matrices that the library compressed-tensors would not
// decode: `ignore` lists them, or no target of config_groups names them. Throws what QuantizationConfig::lists() and
// ModuleList::match() throw.
std::vector<std::string> list_name_warnings(const Model& model, const QuantizationConfig& config,
                                            std::span<const std::string> matrices);

// Throws invalid_file (without path) if the configuration or its groups name formats, but neither `format` nor
// "naive-quantized".
void require_format(const MatrixParts& matrix, const QuantizationConfig& config, std::string_view format);

}  // namespace compressed_tensors

// Holds `weight`, f8 [out, in], and the tensor of its scales. The constructor throws invalid_file (without path) if one
// of them is missing, and for other types and ranks.
struct F8Matrix {
  F8Matrix(const MatrixParts& matrix, std::string_view scales_ending,
           std::initializer_list<DType> types = {DType::f8_e4m3, DType::f8_e5m2, DType::f8_e4m3fnuz,
                                                 DType::f8_e5m2fnuz});

  // Returns the tensor with a scale for each block of [rows, columns].
  Tensor make_tensor(std::uint64_t rows, std::uint64_t columns) const;

  const Tensor& weight;
  const Part& data;
  const Tensor& scales;
};

// Makes a tensor from `weight`, f8 [out, in], and its scales: one for the matrix, or one for each row.
Tensor make_scaled_f8(const MatrixParts& matrix, std::string_view scales_ending);

Part make_part(std::string_view role, DType dtype, BlobPtr blob);
inline Part make_part(std::string_view role, const Part& part) {
  return make_part(role, part.dtype, BlobPtr(part.blob));
}

// Returns the elements of a dense floating-point tensor as float32.
BlobPtr cast_to_f32(const Tensor& tensor);
// Returns the elements of a dense tensor of integers or floating-point numbers as float32. Rounds large integers.
BlobPtr make_f32_numbers(const Tensor& tensor);

// Returns the data of a dense matrix, transposed. Requires: rank 2, elements of whole bytes.
BlobPtr transpose_data(const Tensor& matrix);

// Computes the float32 numbers `out`, whose first has the index `first`.
using MakeNumbers = std::function<void(std::uint64_t first, std::span<float> out)>;
// Makes a blob of float32 numbers that are computed when they are read.
BlobPtr make_computed_f32(std::uint64_t elements, MakeNumbers make);
// Makes a part of float32 numbers that are computed from `inputs` when they are read. Reading throws unsupported if a
// number is infinite although none of the inputs is.
Part make_computed_part(const MatrixParts& matrix, std::string_view role, std::uint64_t elements,
                        std::initializer_list<const Tensor*> inputs, MakeNumbers make);

// Reads the first element of a dense floating-point tensor.
float read_scalar(const Tensor& tensor);

// Reads the first float16 numbers, at most 4096, as a sample of zero points.
std::vector<float> read_f16_sample(const BlobPtr& halves);

// Makes a blob that repeats a number `count` times, as float16.
BlobPtr repeat_f16(float number, std::uint64_t count);

// Describes codes in groups that share a scale. Groups are neighbours in a row, or an index assigns columns to groups;
// with an index, groups may also run along columns.
struct GroupParts {
  Shape shape;  // [rows, columns]
  unsigned bits = 0;
  std::uint64_t group_size = 0;
  BlobPtr codes;            // codes of `bits` bits, packed as make_codes_blob() packs them
  Part scales;              // [rows, columns / group_size]; for groups along columns: [rows / group_size, columns]
  Part zeros;               // the same shape
  BlobPtr index = nullptr;  // u32, the group of each column (or row); null: groups of neighbours
  std::size_t axis = 1;     // 0: groups run along columns
};
// Makes a tensor with value = (code - zero) * scale. Throws what MatrixParts::fail() and check_parts() throw.
Tensor make_group_tensor(const MatrixParts& matrix, GroupParts parts);

// Makes a tensor of floating-point numbers with a float32 scale for each block of [rows, columns].
Tensor make_block_scaled_tensor(const Shape& shape, DType type, BlobPtr data, BlobPtr scales, std::uint64_t rows,
                                std::uint64_t columns);

// Makes a tensor of MX numbers, whose last axis has groups of 32 with an exponent (E8M0): in the layout zt.mx/1 for
// f4_e2m1, and as blocks with scales for f8. `exponents`: u8 or f8_e8m0, in the same shape, except that the last axis
// is divided by 32. Throws invalid_file (without path) for other exponents, and for numbers that are not whole groups.
Tensor make_mx_tensor(const MatrixParts& matrix, const Shape& shape, const Part& numbers, const Tensor& exponents);

// Makes a tensor of MX numbers from the bytes of a matrix with the suffix `codes`. A byte has two f4_e2m1, the even one
// in the low half.
Tensor make_packed_mxfp4_tensor(const MatrixParts& matrix, std::string_view codes, std::string_view exponents);

// Describes how groups of `wanted` neighbours (the last may be shorter) are split into groups of equal size. Each part
// of a group keeps its scale.
struct EvenGroups {
  std::uint64_t wanted;
  std::uint64_t count;  // the number of wanted groups
  std::uint64_t size;   // gcd(wanted, columns)
  std::uint64_t times;  // the number of equal groups in a wanted one
};
// Requires: neither number is 0.
EvenGroups split_evenly(std::uint64_t columns, std::uint64_t wanted);

// Describes a grid of numbers, one for each block of a matrix; the blocks of the last row and column may be cut.
struct BlockGrid {
  std::uint64_t rows = 0;  // the number of blocks along this axis
  std::uint64_t columns = 0;
  std::uint64_t down = 1;    // rows of the matrix in a block
  std::uint64_t across = 1;  // columns of the matrix in a block
};
// Makes a blob with the shape of a matrix, in which each element is the number of its block.
// Requires: `type` has whole bytes; the grid has shape[0] / down rows and shape[1] / across columns, rounded up.
BlobPtr repeat_blocks(BlobPtr numbers, DType type, const BlockGrid& grid, const Shape& shape);

// Makes GroupParts::index for the groups of split_evenly() from the i32 or i64 tensor with that ending. Returns null if
// the tensor is missing, or if groups are neighbours anyway. Throws invalid_file (without path) if the tensor has
// another type or shape, or names a group that does not exist.
BlobPtr make_group_index(const MatrixParts& matrix, std::string_view ending, std::uint64_t columns,
                         const EvenGroups& groups);

// Reads the rows and columns of a block: two positive integers, or "128x128". Throws invalid_file (without path).
std::array<std::uint64_t, 2> read_sides(const Value* value, std::string_view key);

// Makes a tensor from a matrix of signed codes of one byte, with a scale for each row; `scales` are float32. Requires:
// a dense matrix of i8.
Tensor make_signed_rows(const MatrixParts& matrix, const Tensor& codes, BlobPtr scales);

// Makes signed codes of one byte unsigned, with zero in the middle. Requires: a dense matrix of i8.
BlobPtr remove_sign(const Tensor& codes);

// Returns the number of bits that groups use for a code of `bits` bits: 2, 4 or 8, rounded up.
unsigned round_bits(unsigned bits);

}  // namespace poise::schemes
