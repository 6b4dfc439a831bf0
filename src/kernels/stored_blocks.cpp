// Lists the kernels for weights that are stored as ggml's blocks. Every type that ggml decodes has a row and kernels of
// its own.
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "codec/block_type_table.hpp"
#include "kernels/product_kernels.hpp"

namespace poise {
namespace {

const TypeKernels& get_decoding_kernels() {
  static constexpr TypeKernels kKernels = {.decode = decode_blocks};
  return kKernels;
}

struct BlockRow {
  std::string_view name;  // BlockType::name
  std::size_t x_group;    // columns in each sum of 7-bit x; 0: x has 15 bits, and products need no sums
  const TypeKernels& (*kernels)();
};

// clang-format off
constexpr auto kBlockRows = std::to_array<BlockRow>({
    {"q4_0", 32, get_q4_0_kernels},
    {"q4_1", 32, get_q4_1_kernels},
    {"q5_0", 32, get_q5_0_kernels},
    {"q5_1", 32, get_q5_1_kernels},
    {"q8_0", 0, get_q8_0_kernels},
    {"q2_k", 16, get_q2_k_kernels},
    {"q3_k", 16, get_q3_k_kernels},
    {"q4_k", 32, get_q4_k_kernels},
    {"q5_k", 32, get_q5_k_kernels},
    {"q6_k", 16, get_q6_k_kernels},
    {"q8_k", 0, get_q8_k_kernels},
    {"iq2_xxs", 32, get_iq2_xxs_kernels},
    {"iq2_xs", 16, get_iq2_xs_kernels},
    {"iq3_xxs", 32, get_iq3_xxs_kernels},
    {"iq1_s", 32, get_iq1_s_kernels},
    {"iq4_nl", 32, get_iq4_nl_kernels},
    {"iq3_s", 32, get_iq3_s_kernels},
    {"iq2_s", 16, get_iq2_s_kernels},
    {"iq4_xs", 32, get_iq4_xs_kernels},
    {"iq1_m", 16, get_iq1_m_kernels},
    {"tq1_0", 32, get_tq1_0_kernels},
    {"tq2_0", 32, get_tq2_0_kernels},
    {"mxfp4", 32, get_mxfp4_kernels},
    {"nvfp4", 16, get_nvfp4_kernels},
    {"q1_0", 32, get_q1_0_kernels},
    {"q2_0", 32, get_q2_0_kernels},
});
// clang-format on

// Returns true if the row names a type with a decoder, whose blocks are whole groups of x_group columns.
constexpr bool is_valid_row(const BlockRow& row) {
  const std::size_t place = find_block_type_index(row.name);
  return place < kBlockTypes.size() && kBlockTypes[place].decode != nullptr &&
         (row.x_group == 0 || kBlockTypes[place].elements % row.x_group == 0);
}
static_assert(std::ranges::all_of(kBlockRows, is_valid_row),
              "a row names an unknown block type, or a group that does not divide its elements");

constexpr bool is_unique_row(const BlockRow& row) {
  return std::ranges::count(kBlockRows, row.name, &BlockRow::name) == 1;
}
static_assert(std::ranges::all_of(kBlockRows, is_unique_row), "two rows name the same block type");

// The rows are in the order of kBlockTypes.
constexpr auto kTypes = [] {
  std::array<StoredTypeRow, kBlockTypes.size()> types;
  types.fill({.planes = 2, .kernels = get_decoding_kernels});
  for (const BlockRow& row : kBlockRows)
    types.at(find_block_type_index(row.name)) = {.planes = 2, .x_group = row.x_group, .kernels = row.kernels};
  return types;
}();

}  // namespace

// Requires: `type` is an element of kBlockTypes, like all types that codec/block_type.hpp returns.
const StoredTypeRow& find_stored_block_type(const BlockType& type) {
  return kTypes.at(static_cast<std::size_t>(&type - kBlockTypes.data()));
}

void decode_blocks(const StoredRows& matrix, const DecodedPart& part) {
  const BlockType& type = *matrix.blocks;
  const std::size_t row_bytes = matrix.columns / type.elements * type.bytes;
  const std::size_t first = part.begin / type.elements;
  const std::size_t skipped = part.begin % type.elements;
  const std::size_t blocks = (skipped + part.count + type.elements - 1) / type.elements;
  const bool whole = skipped == 0 && part.count % type.elements == 0;
  thread_local std::vector<float> cut;  // decoded blocks, before columns outside the part are cut off
  if (!whole) cut.resize(std::max(cut.size(), blocks * type.elements));
  for (std::size_t r = part.first; r < part.last; ++r) {
    const std::byte* const at = matrix.data + r * row_bytes + first * type.bytes;
    float* const out = part.out + (r - part.first) * part.stride;
    type.decode(at, blocks, whole ? out : cut.data());
    if (!whole) std::copy_n(cut.data() + skipped, part.count, out);
  }
}

}  // namespace poise
