// Hints: four numbers with which an ALT v2 file repeats information in a tensor's name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <poise/model.hpp>

#include "formats/alt/roles.hpp"

namespace poise::alt {

struct Hints {
  std::int32_t component_type = -1;
  std::int32_t block_index =
      0;  // layer; -1 embed_tokens, -2 lm_head, -3 norm, -4 and below for other tensors outside layers
  std::int32_t layer_type = -1;
  std::int32_t projection_type = -1;
};

constexpr std::int32_t kFirstOtherBlock = -4;

// The hints for a name. `other_block` is the block_index of a tensor outside the layers that has no number of its own.
Hints hints_from_role(const TensorRole& role, std::int32_t other_block);

// True for the tensors that `unique_count` counts, outside the layers.
bool is_unique(const TensorRole& role);

// How many layers, and how many tensors outside them, the names imply.
struct BlockCounts {
  std::int64_t blocks = 0;
  std::int64_t unique = 0;
  friend bool operator==(const BlockCounts&, const BlockCounts&) = default;
};
BlockCounts count_blocks(const Model& model);

}  // namespace poise::alt
