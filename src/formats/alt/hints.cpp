#include "formats/alt/hints.hpp"

#include <set>

namespace poise::alt {
namespace {

std::int32_t block_index(const TensorRole& role, std::int32_t other_block) {
  switch (role.component) {
    case Component::layers: return role.block;
    case Component::embed_tokens: return -1;
    case Component::lm_head: return -2;
    case Component::norm: return -3;
    case Component::other: break;
  }
  return other_block;
}

}  // namespace

Hints hints_from_role(const TensorRole& role, std::int32_t other_block) {
  return {static_cast<std::int32_t>(role.component), block_index(role, other_block),
          static_cast<std::int32_t>(role.layer), static_cast<std::int32_t>(role.projection)};
}

bool is_unique(const TensorRole& role) { return role.component != Component::layers; }

BlockCounts count_blocks(const Model& model) {
  std::set<std::int32_t> blocks;
  BlockCounts counts;
  for (const Tensor& tensor : model.tensors()) {
    const TensorRole role = role_from_name(tensor.name);
    if (is_unique(role)) {
      ++counts.unique;
    } else {
      blocks.insert(role.block);
    }
  }
  counts.blocks = static_cast<std::int64_t>(blocks.size());
  return counts;
}

}  // namespace poise::alt
