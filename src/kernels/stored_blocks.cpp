// Weights stored as ggml's blocks: rows become float32 by the block type's own decoder.
#include <algorithm>
#include <vector>

#include "codec/block_type.hpp"
#include "kernels/stored_type.hpp"

namespace poise {
namespace {

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

}  // namespace

const TypeKernels& block_kernels() {
  static constexpr TypeKernels kKernels = {.decode = decode_blocks};
  return kKernels;
}

}  // namespace poise
