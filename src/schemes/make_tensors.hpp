// Declares what several schemes use: functions that make one tensor of a matrix's parts, and checks of configurations.
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

// Returns the warning that Poise leaves out `count` tensors with scales of activations. `first` is the name of one.
// Requires: `count` is not 0.
std::string format_left_out_warning(std::string_view first, std::size_t count);

// Throws unsupported (without path) for a quant_algo of ModelOpt that no scheme reads.
void require_known_algorithm(const QuantizationConfig& config);

// Implements QuantizationScheme::list_warnings for ModelOpt and Quark. Warns if quant_algo is neither one of
// `algorithms` nor MIXED_PRECISION. Also warns of each list of patterns (exclude_modules, ignore, exclude) that names a
// matrix as not quantized, or takes too long to match. Requires: `matrices` and `algorithms` are not empty.
std::vector<std::string> list_algorithm_warnings(const QuantizationConfig& config,
                                                 std::span<const std::string> matrices,
                                                 std::span<const std::string_view> algorithms);

namespace awq {

// Names the parts of a matrix [out, in] with codes of four bits. A word has eight codes with neighbouring `out` indices
// and the same `in` index.
struct WordParts {
  std::string_view weight;       // suffix of the words of codes: i32 or u32 [in, out / 8]
  std::string_view scales;       // suffix of the scales: [groups, out]
  std::string_view zeros;        // suffix of the words of zero points: i32 or u32 [groups, out / 8]
  std::uint64_t group_size = 0;  // columns of a group; 0: a row is one group
  bool in_order = false;         // true: codes follow each other from the low bits on, not in AWQ's order
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

// Holds `weight`, f8 [out, in], and the tensor of its scales: f32, bf16, f16 or f8_e8m0, of any shape. The constructor
// throws invalid_file (without path) if a tensor is missing or has another type, or if `weight` is not a matrix.
// Requires: the model of `matrix` outlives this.
struct F8Matrix {
  F8Matrix(const MatrixParts& matrix, std::string_view scales_ending,
           std::initializer_list<DType> types = {DType::f8_e4m3, DType::f8_e5m2, DType::f8_e4m3fnuz,
                                                 DType::f8_e5m2fnuz});

  // Returns the folded tensor, with a scale for each block of `rows` rows and `columns` columns. Throws what
  // check_parts() throws.
  Tensor make_tensor(std::uint64_t rows, std::uint64_t columns) const;

  const Tensor& weight;
  const Part& data;
  const Tensor& scales;
};

// Makes a tensor from `weight`, f8 [out, in], and its scales: one number, or one for each row ([out] or [out, 1]).
// Throws what F8Matrix() throws, and invalid_file (without path) for scales of other shapes and for an empty matrix.
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

// Computes the numbers from the index `first` on, as many as `out` holds, and stores them in `out`. Several threads may
// call it at the same time.
using MakeNumbers = std::function<void(std::uint64_t first, std::span<float> out)>;
// Makes a blob of float32 numbers that are computed when they are read.
BlobPtr make_computed_f32(std::uint64_t elements, MakeNumbers make);
// Makes a part of float32 numbers, which `make` computes from the data of `inputs` when they are read. Reading throws
// unsupported for an infinite number if no number of `inputs` is infinite.
Part make_computed_part(const MatrixParts& matrix, std::string_view role, std::uint64_t elements,
                        std::initializer_list<const Tensor*> inputs, MakeNumbers make);

// Returns the first element of a dense floating-point tensor as float32. Requires: the tensor is not empty.
float read_scalar(const Tensor& tensor);

// Returns the first numbers of a blob of float16, at most 4096, as a sample of zero points.
std::vector<float> read_f16_sample(const BlobPtr& halves);

// Makes a blob that repeats a number `count` times, as float16.
BlobPtr repeat_f16(float number, std::uint64_t count);

// Describes codes in groups; each group has a scale and a zero point. Without `index`, the codes of a group are
// neighbours in a row. With `index`, a group has codes from any columns of a row, or with axis 0 from any rows of a
// column.
struct GroupParts {
  Shape shape;  // [rows, columns]
  unsigned bits = 0;
  std::uint64_t group_size = 0;
  BlobPtr codes;            // codes of `bits` bits, packed as make_codes_blob() packs them
  Part scales;              // [rows, columns / group_size]; with axis 0: [rows / group_size, columns]
  Part zeros;               // the shape of `scales`
  BlobPtr index = nullptr;  // u32, the group of each column (with axis 0, of each row); null: neighbours share groups
  std::size_t axis = 1;     // 1: groups run along rows; 0, only with `index`: along columns
};
// Makes a tensor with value = (code - zero) * scale. Throws what MatrixParts::fail() and check_parts() throw.
Tensor make_group_tensor(const MatrixParts& matrix, GroupParts parts);

// Makes a tensor without a name: floating-point numbers, with a float32 scale for each block of `rows` rows and
// `columns` columns. Throws what check_parts() throws.
Tensor make_block_scaled_tensor(const Shape& shape, DType type, BlobPtr data, BlobPtr scales, std::uint64_t rows,
                                std::uint64_t columns);

// Makes a tensor of MX numbers: 32 neighbours along the last axis share an exponent (E8M0). The layout is zt.mx/1 for
// f4_e2m1, and poise.block_scaled/1 for f8. `exponents` is u8 or f8_e8m0; its last axis is 32 times as short. Throws
// invalid_file (without path) if `exponents` has another type or shape, if the last axis of `shape` is not a multiple
// of 32, and if there are no numbers.
Tensor make_mx_tensor(const MatrixParts& matrix, const Shape& shape, const Part& numbers, const Tensor& exponents);

// Makes a tensor of MX numbers from the tensors with the suffixes `codes`, u8 [rows, columns / 2], and `exponents`. A
// byte of codes has two f4_e2m1 numbers, the one with the even index in the low half. Throws invalid_file (without
// path) if a tensor is missing or has another type or rank, and what make_mx_tensor() throws.
Tensor make_packed_mxfp4_tensor(const MatrixParts& matrix, std::string_view codes, std::string_view exponents);

// Describes how groups of `wanted` neighbours (the last may be shorter) are split into smaller groups of one size. Each
// smaller group has the scale of the wanted group that it comes from.
struct EvenGroups {
  std::uint64_t wanted;
  std::uint64_t count;  // the number of wanted groups: columns / wanted, rounded up
  std::uint64_t size;   // the size of a smaller group: gcd(wanted, columns)
  std::uint64_t times;  // the number of smaller groups in a whole wanted one
};
// Requires: neither `columns` nor `wanted` is 0.
EvenGroups split_evenly(std::uint64_t columns, std::uint64_t wanted);

// Describes a grid with one number for each block of a matrix. The last block along an axis may be smaller.
struct BlockGrid {
  std::uint64_t rows = 0;     // blocks from top to bottom
  std::uint64_t columns = 0;  // blocks from left to right
  std::uint64_t down = 1;     // rows of the matrix in a block
  std::uint64_t across = 1;   // columns of the matrix in a block
};
// Makes the elements of a matrix: each one is a copy of the number that `numbers` has for its block.
// Requires: `type` has whole bytes; the grid has shape[0] / down rows and shape[1] / across columns, rounded up.
BlobPtr repeat_blocks(BlobPtr numbers, DType type, const BlockGrid& grid, const Shape& shape);

// Makes GroupParts::index from the tensor with the suffix `ending`: i32 or i64, the wanted group of each column. In the
// index, the first smaller group stands for a wanted group. Returns null if the tensor is missing, or if neighbours
// share groups in order, which needs no index. Throws invalid_file (without path) if the tensor has another type or
// shape, or names a group that does not exist, and for 2^32 columns or more.
BlobPtr make_group_index(const MatrixParts& matrix, std::string_view ending, std::uint64_t columns,
                         const EvenGroups& groups);

// Reads the rows and columns of a block: a list of two positive integers, or a text such as "128x128". Throws
// invalid_file (without path), which names `key`, for null and for other values.
std::array<std::uint64_t, 2> read_sides(const Value* value, std::string_view key);

// Makes a tensor of groups from a matrix of signed codes of one byte, with a scale for each row; `scales` are float32.
// Requires: a dense matrix of i8.
Tensor make_row_scaled_i8(const MatrixParts& matrix, const Tensor& codes, BlobPtr scales);

// Adds 128 to signed codes of one byte, which makes them unsigned. Requires: a dense matrix of i8.
BlobPtr remove_sign(const Tensor& codes);

// Returns the smallest of 2, 4 and 8 that is at least `bits`: GroupParts has codes of these widths only. Requires:
// `bits` is at most 8.
unsigned round_bits(unsigned bits);

}  // namespace poise::schemes
