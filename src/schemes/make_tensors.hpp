// Makes tensors for the rows of the table of schemes.
#pragma once

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include <poise/tensor.hpp>

#include "schemes/scheme.hpp"
#include "views/integer_blobs.hpp"

namespace poise::schemes {

// How inputs, outputs, attention and the cache of keys and values are quantized.
inline constexpr std::array kNotOfWeights = std::to_array<std::string_view>(
    {".input_scale",      ".input_scale_ub", ".input_zero_point",  ".input_global_scale",
     ".activation_scale", ".output_scale",   ".output_zero_point", ".output_global_scale",
     ".kv_scale",         ".q_scale",        ".q_zero_point",      ".q_global_scale",
     ".k_scale",          ".k_zero_point",   ".k_global_scale",    ".v_scale",
     ".v_zero_point",     ".v_global_scale", ".prob_scale",        ".prob_output_scale",
     ".prob_zero_point",  ".scale_input"});

// Returns the warning about that many such tensors, the first of them with this name.
std::string describe_left_out(std::string_view first, std::size_t count);

// Throws unsupported (without path) for a kind of quantization (quant_algo) of ModelOpt that its schemes do not read.
void require_known_algorithm(const QuantizationConfig& config);

// Returns QuantizationScheme::doubts of matrices that these kinds of quantization store: another quant_algo, and
// matrices that exclude_modules or ignore, patterns of modules, list as not quantized.
std::vector<std::string> find_algorithm_doubts(const QuantizationConfig& config, std::span<const std::string> matrices,
                                               std::span<const std::string_view> algorithms);

namespace compressed_tensors {

// Returns QuantizationScheme::doubts of its names: matrices that ignore lists, or that no target of config_groups
// names, which its library leaves as they are. Throws what ModuleList::match() throws.
std::vector<std::string> find_name_doubts(const Model& model, const QuantizationConfig& config,
                                          std::span<const std::string> matrices);

// Throws invalid_file (without path) if the `format` of the model and of its groups are all others.
void require_format(const MatrixParts& matrix, const QuantizationConfig& config, std::string_view format);

}  // namespace compressed_tensors

// Holds `weight`, f8 [out, in], and the tensor of its scales. Throws invalid_file (without path) for other types and
// ranks.
struct F8Matrix {
  F8Matrix(const MatrixParts& matrix, std::string_view scales_ending,
           std::initializer_list<DType> types = {DType::f8_e4m3, DType::f8_e5m2, DType::f8_e4m3fnuz,
                                                 DType::f8_e5m2fnuz});

  // Returns the tensor with a scale for each block of [rows, columns].
  Tensor make_scaled(std::uint64_t rows, std::uint64_t columns) const;

  const Tensor& weight;
  const Part& data;
  const Tensor& scales;
};

// Makes a tensor from `weight`, f8 [out, in], with scales: one number for all rows, or one for each.
Tensor make_scaled_f8(const MatrixParts& matrix, std::string_view scales_ending);

// Returns the part with another role.
Part make_part(std::string_view role, DType dtype, BlobPtr blob);
inline Part make_part(std::string_view role, const Part& part) {
  return make_part(role, part.dtype, BlobPtr(part.blob));
}

// Returns the elements of a dense floating-point tensor as float32.
BlobPtr cast_to_f32(const Tensor& tensor);
// Does the same for integers, too, rounded.
BlobPtr make_f32_numbers(const Tensor& tensor);

// Returns the data of a dense matrix, transposed. Requires: rank 2, elements of whole bytes.
BlobPtr transpose_data(const Tensor& matrix);

// Computes float32 numbers in blocks, from the index of the first.
using MakeNumbers = std::function<void(std::uint64_t first, std::span<float> out)>;
BlobPtr compute_f32(std::uint64_t elements, MakeNumbers make);
// Does the same from numbers of these tensors, as a part of the matrix: reading throws unsupported when one is infinite
// and none of theirs is.
Part compute_part(const MatrixParts& matrix, std::string_view role, std::uint64_t elements,
                  std::initializer_list<const Tensor*> inputs, MakeNumbers make);

// Reads the first element of a dense floating-point tensor.
float read_scalar(const Tensor& tensor);

// Reads the first float16 numbers, at most 4096 of them: an example, where a scheme has the same for all.
std::vector<float> read_numbers(const BlobPtr& halves);

// Returns the same number for each of `count` groups, as float16.
BlobPtr repeat_f16(float number, std::uint64_t count);

// Holds groups along rows: of neighbours, or those that an index gives. With an index they may be along columns.
struct GroupParts {
  Shape shape;  // [rows, columns]
  unsigned bits = 0;
  std::uint64_t group_size = 0;
  BlobPtr codes;            // make_codes_blob() in `bits` bits
  Part scales;              // [rows, columns / group_size]; along columns [rows / group_size, columns]
  Part zeros;               // the same
  BlobPtr index = nullptr;  // u32, for each column or row its group; null: groups of neighbours
  std::size_t axis = 1;     // 0: along columns
};
// Makes a tensor with value = (code - zero) * scale. Throws what the layouts' checks throw.
Tensor make_groups(const MatrixParts& matrix, GroupParts parts);

// Makes a tensor of floating-point numbers with a scale (f32) for each block of [rows, columns].
Tensor make_block_scaled(const Shape& shape, DType type, BlobPtr data, BlobPtr scales, std::uint64_t rows,
                         std::uint64_t columns);

// Holds groups of `wanted` neighbours, the last one perhaps shorter, as groups of one size: each wanted one is `times`
// of these, which share its scale.
struct EvenGroups {
  std::uint64_t wanted;
  std::uint64_t count;  // of the wanted ones
  std::uint64_t size;   // the greatest divisor of `wanted` that divides the columns, too
  std::uint64_t times;
};
// Requires: neither is 0.
EvenGroups split_evenly(std::uint64_t columns, std::uint64_t wanted);

// Describes one number for each block of a matrix; the blocks of the last row and column may be cut.
struct BlockGrid {
  std::uint64_t rows = 0;  // of numbers
  std::uint64_t columns = 0;
  std::uint64_t down = 1;    // rows of the matrix in a block
  std::uint64_t across = 1;  // columns of the matrix in a block
};
// Returns the number of each element of a matrix with that shape, computed when read. Requires: `type` has whole bytes;
// the grid has shape[0] / down rows and shape[1] / across columns, rounded up, and `numbers` holds one for each block.
BlobPtr repeat_blocks(BlobPtr numbers, DType type, const BlockGrid& grid, const Shape& shape);

// Returns the u32 of each column's group, in parts of split_evenly(), from the i32 or i64 tensor with that ending; null
// if it is missing, or neighbours share a group. Throws invalid_file (without path) for a missing group.
BlobPtr make_index(const MatrixParts& matrix, std::string_view ending, std::uint64_t columns, const EvenGroups& groups);

// Reads the rows and columns of a block: two positive integers, or "128x128". Throws invalid_file (without path).
std::array<std::uint64_t, 2> read_sides(const Value* value, std::string_view key);

// Returns signed codes of one byte as unsigned ones, with `zero` in the middle. Requires: a dense matrix of i8.
BlobPtr remove_sign(const Tensor& codes);

// Returns the bits in which groups store a code: 4 for 3, and 8 for 5 and 6.
unsigned round_bits(unsigned bits);

}  // namespace poise::schemes
