// Chooses the ggml block type for each matrix of a model by a recipe. Names and choices are those of llama-quantize; a
// name that is also that of a block type gets ":mix" at its end.
//
// Source: llama.cpp's src/llama-quant.cpp, v0.5.0.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <poise/model.hpp>

#include "codec/block_type.hpp"

namespace poise {

// Returns the names of all recipes: "q4_k_m", "q2_k:mix", ...
std::span<const std::string_view> list_block_recipes();
bool is_block_recipe(std::string_view name);

// Returns true if a matrix of this name is one that llama-quantize never quantizes.
bool is_never_quantized(std::string_view name);

// Returns true for the embedding and the output matrix, which llama-imatrix does not measure.
bool is_embedding_or_output(std::string_view name);

class BlockRecipe {
 public:
  // Throws bad_argument for unknown names, and unsupported if Poise cannot write the recipe's blocks.
  BlockRecipe(std::string_view name, const Model& model);

  // Returns the type for a matrix of the model, even if its rows are not whole blocks of this type. `row_length` is the
  // number of elements of the rows that become blocks. `has_importance` is true if there is an importance matrix.
  const BlockType& choose_type(std::string_view tensor, std::uint64_t row_length, bool has_importance) const;

 private:
  struct Row;
  friend std::span<const std::string_view> list_block_recipes();
  static std::span<const Row> list_rows();

  const Row* row_;
  std::int64_t layers_ = 0;
  std::int64_t heads_per_key_ = 1;
  bool is_70b_ = false;
  bool has_8_experts_ = false;
  bool tied_ = false;
};

}  // namespace poise
