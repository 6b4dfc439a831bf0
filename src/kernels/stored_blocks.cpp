// Weights stored as ggml's blocks: one row a type that has products of its own, as all have that ggml decodes.
#include <algorithm>
#include <array>
#include <vector>

#include "codec/block_type.hpp"
#include "kernels/blocks/block_kernels.hpp"

namespace poise {
namespace {

const TypeKernels& decoding_kernels() {
  static constexpr TypeKernels kKernels = {.decode = decode_blocks};
  return kKernels;
}

struct BlockRow {
  std::uint32_t number;  // of the type
  std::size_t x_group;   // columns that share a scale; 0: x has 15 bits, and nothing is multiplied with sums of it
  const TypeKernels& (*kernels)();
};

// clang-format off
constexpr auto kBlockRows = std::to_array<BlockRow>({
    {2, 32, q4_0_kernels},
    {3, 32, q4_1_kernels},
    {6, 32, q5_0_kernels},
    {7, 32, q5_1_kernels},
    {8, 0, q8_0_kernels},
    {10, 16, q2_k_kernels},
    {11, 16, q3_k_kernels},
    {12, 32, q4_k_kernels},
    {13, 32, q5_k_kernels},
    {14, 16, q6_k_kernels},
    {15, 0, q8_k_kernels},
    {16, 32, iq2_xxs_kernels},
    {17, 16, iq2_xs_kernels},
    {18, 32, iq3_xxs_kernels},
    {19, 32, iq1_s_kernels},
    {20, 32, iq4_nl_kernels},
    {21, 32, iq3_s_kernels},
    {22, 16, iq2_s_kernels},
    {23, 32, iq4_xs_kernels},
    {29, 16, iq1_m_kernels},
    {34, 32, tq1_0_kernels},
    {35, 32, tq2_0_kernels},
    {39, 32, mxfp4_kernels},
    {40, 16, nvfp4_kernels},
    {41, 32, q1_0_kernels},
    {42, 32, q2_0_kernels},
});
// clang-format on

// By the types' numbers.
constexpr auto kTypes = [] {
  constexpr std::size_t kCount = 64;
  std::array<StoredTypeRow, kCount> types;
  types.fill({.planes = 2, .kernels = decoding_kernels});
  for (const BlockRow& row : kBlockRows)
    types.at(row.number) = {.planes = 2, .x_group = row.x_group, .kernels = row.kernels};
  return types;
}();

}  // namespace

const StoredTypeRow& stored_block_type(const BlockType& type) { return kTypes.at(type.number); }

void decode_blocks(const StoredRows& matrix, const DecodedPart& part) {
  const BlockType& type = *matrix.blocks;
  const std::size_t row_bytes = matrix.columns / type.elements * type.bytes;
  const std::size_t first = part.begin / type.elements;
  const std::size_t skipped = part.begin % type.elements;
  const std::size_t blocks = (skipped + part.count + type.elements - 1) / type.elements;
  const bool whole = skipped == 0 && part.count % type.elements == 0;
  thread_local std::vector<float> cut;  // columns of a block that are not asked for are decoded with the others
  if (!whole) cut.resize(std::max(cut.size(), blocks * type.elements));
  for (std::size_t r = part.first; r < part.last; ++r) {
    const std::byte* const at = matrix.data + r * row_bytes + first * type.bytes;
    float* const out = part.out + (r - part.first) * part.stride;
    type.decode(at, blocks, whole ? out : cut.data());
    if (!whole) std::copy_n(cut.data() + skipped, part.count, out);
  }
}

}  // namespace poise
