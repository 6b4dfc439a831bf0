#include "ops/block_recipe.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "family/families.hpp"

namespace poise {
namespace {

// Names the use of a matrix, as far as recipes distinguish it.
enum class Use : std::uint8_t { output, embedding, values, keys, down, attention_output, other };

struct UseRow {
  std::string_view suffix;
  Use use;
};
constexpr std::array kUses = std::to_array<UseRow>({
    {"self_attn.v_proj.weight", Use::values},
    {"attn_v.weight", Use::values},
    {"self_attn.qkv_proj.weight", Use::values},
    {"attn_qkv.weight", Use::values},
    {"attn.c_attn.weight", Use::values},
    {"self_attn.k_proj.weight", Use::keys},
    {"attn_k.weight", Use::keys},
    {"self_attn.o_proj.weight", Use::attention_output},
    {"attn_output.weight", Use::attention_output},
    {".attn.c_proj.weight", Use::attention_output},
    {".down_proj.weight", Use::down},
    {".w2.weight", Use::down},
    {".mlp.c_proj.weight", Use::down},
    {"ffn_down.weight", Use::down},
    {"ffn_down_exps.weight", Use::down},
    {"lm_head.weight", Use::output},
    {"output.weight", Use::output},
    {"embed_tokens.weight", Use::embedding},
    {"wte.weight", Use::embedding},
    {"token_embd.weight", Use::embedding},
});

Use find_use(std::string_view name) {
  // attn_output.weight also ends with output.weight, so longer endings come first.
  const auto* row = std::ranges::find_if(kUses, [&](const UseRow& use) { return name.ends_with(use.suffix); });
  return row == kUses.end() ? Use::other : row->use;
}

// Names of routers and of learned positions have these endings. Both are small and sensitive to errors.
constexpr auto kNeverBlocks = std::to_array<std::string_view>({"block_sparse_moe.gate.weight", "mlp.gate.weight",
                                                               "mlp.router.weight", "ffn_gate_inp.weight", "wpe.weight",
                                                               "position_embd.weight", "position_embedding.weight"});
// Names of other matrices that llama-quantize leaves unquantized contain these texts: norms, convolutions, decays over
// time, embeddings of images, ...
constexpr std::array kNeverParts = std::to_array<std::string_view>({
    "_norm.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "token_types.weight",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first.weight",
    "time_mix_w",
    "time_mix_v0.",
    "time_mix_v1.",
    "time_mix_v2.",
    "time_mix_a0.",
    "time_mix_a1.",
    "time_mix_a2.",
    "time_mix_g1.",
    "time_mix_g2.",
    "time_mix_decay_w",
    "time_mix_lerp_fused",
    "attn_rel_b.weight",
    ".position_embd",
    "sam.pos_embd",
    "sam.neck.",
    "sam.net_",
    ".rel_pos",
    ".patch_embd",
    ".patch_merger",
    "a.rvq.codebook",
    "mm.a.code_embd",
});

// Returns the value of the key ARCHITECTURE.KEY in a GGUF file whose architecture Poise does not know; 0 without such a
// key.
std::uint64_t read_number_in_file(const Model& model, std::string_view key) {
  const auto* number = model.attributes.get_if<std::uint64_t>(fmt::format("{}.{}", model.card.model_type, key));
  return number == nullptr ? 0 : *number;
}

std::uint64_t count_experts(const Model& model) {
  for (const std::string_view key : {"num_local_experts", "num_experts"}) {
    if (const auto* number = model.config_json.get_if<std::uint64_t>(key)) return *number;
  }
  return read_number_in_file(model, "expert_count");
}

// Returns the first number between dots, or -1.
std::int64_t find_layer(std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(name.data() + dot + 1, name.data() + name.size(), number);
    if (error == std::errc() && stop != name.data() + name.size() && *stop == '.') return number;
  }
  return -1;
}

// Returns true for layers in which errors count more: the first and last eighth, and every third between.
bool is_weighty(std::int64_t layer, std::int64_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

}  // namespace

// Holds the types that a recipe chooses for uses of matrices. An empty name means the recipe's base type. `weighty`
// applies to layers for which is_weighty() is true, `early` to the first layers.
struct BlockRecipe::Row {
  struct Choice {
    std::string_view all = {};
    std::string_view weighty = {};
    std::string_view early = {};
    std::int64_t early_of = 0;     // 8: `early` applies to the first eighth of the layers
    std::int64_t early_first = 0;  // 4: `early` applies to the first 4 layers
  };
  std::string_view name;
  std::string_view base;
  Choice values = {};
  Choice down = {};
  std::string_view attention_output = {};
  std::string_view values_of_many_queries = {};  // if 4 or more query heads share a key head
  std::string_view down_with_importance = {};    // for the first eighth of the layers, if there is an importance matrix
  bool attention_output_of_8_experts = false;    // attention_output is q5_k in models with 8 experts
};

std::span<const BlockRecipe::Row> BlockRecipe::list_rows() {
  static constexpr std::array kRows = std::to_array<Row>({
      {.name = "q2_k:mix",
       .base = "q2_k",
       .values = {.all = "q3_k"},
       .down = {.all = "q3_k"},
       .attention_output = "q3_k",
       .values_of_many_queries = "q4_k",
       .attention_output_of_8_experts = true},
      {.name = "q3_k_s", .base = "q3_k", .attention_output_of_8_experts = true},
      {.name = "q3_k_m",
       .base = "q3_k",
       .values = {.all = "q4_k", .early = "q5_k", .early_first = 2},
       .down = {.all = "q4_k", .early = "q5_k", .early_of = 16},
       .attention_output = "q4_k",
       .attention_output_of_8_experts = true},
      {.name = "q3_k_l",
       .base = "q3_k",
       .values = {.all = "q5_k"},
       .down = {.all = "q5_k"},
       .attention_output = "q5_k"},
      {.name = "q4_0:mix", .base = "q4_0", .down_with_importance = "q4_1"},
      {.name = "q4_k_s",
       .base = "q4_k",
       .values = {.early = "q5_k", .early_first = 4},
       .down = {.early = "q5_k", .early_of = 8},
       .attention_output_of_8_experts = true},
      {.name = "q4_k_m",
       .base = "q4_k",
       .values = {.weighty = "q6_k"},
       .down = {.weighty = "q6_k"},
       .attention_output_of_8_experts = true},
      {.name = "q5_k_s", .base = "q5_k"},
      {.name = "q5_k_m", .base = "q5_k", .values = {.weighty = "q6_k"}, .down = {.weighty = "q6_k"}},
      {.name = "q6_k:mix", .base = "q6_k"},
      {.name = "q8_0:mix", .base = "q8_0"},
  });
  return kRows;
}

std::span<const std::string_view> list_block_recipes() {
  static const auto names = [] {
    std::vector<std::string_view> all;
    for (const BlockRecipe::Row& row : BlockRecipe::list_rows()) all.push_back(row.name);
    return all;
  }();
  return names;
}

bool is_never_quantized(std::string_view name) {
  // llama-quantize quantizes only tensors whose names end in "weight". This rule is for llama.cpp's own names ("blk."):
  // names of stacked experts in transformers lack the ending.
  if (name.starts_with("blk.") && !name.ends_with("weight")) return true;
  return std::ranges::any_of(kNeverBlocks, [&](std::string_view ending) { return name.ends_with(ending); }) ||
         std::ranges::any_of(kNeverParts,
                             [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

bool is_embedding_or_output(std::string_view name) {
  const Use use = find_use(name);
  return use == Use::embedding || use == Use::output;
}

bool is_block_recipe(std::string_view name) {
  return std::ranges::find(list_block_recipes(), name) != list_block_recipes().end();
}

BlockRecipe::BlockRecipe(std::string_view name, const Model& model) {
  const auto found = std::ranges::find(list_rows(), name, &Row::name);
  if (found == list_rows().end())
    throw Error(ErrorKind::bad_argument,
                fmt::format("recipe {} is unknown, expected one of {}", name, fmt::join(list_block_recipes(), ", ")));
  row_ = &*found;
  if (find_named_block_type(row_->base)->encode == nullptr)
    throw Error(ErrorKind::unsupported,
                fmt::format("Poise does not write blocks of {} yet; choose another recipe", row_->base));
  has_8_experts_ = count_experts(model) == 8;
  tied_ = model.find(find_family_or_llama(model).output) == nullptr && model.find("output.weight") == nullptr;
  if (!model.config) {
    for (const Tensor& tensor : model.tensors()) layers_ = std::max(layers_, find_layer(tensor.name) + 1);
    const std::uint64_t keys = read_number_in_file(model, "attention.head_count_kv");
    if (keys > 0) heads_per_key_ = static_cast<std::int64_t>(read_number_in_file(model, "attention.head_count") / keys);
    return;
  }
  const Config& config = *model.config;
  layers_ = config.num_hidden_layers;
  if (config.num_key_value_heads > 0) heads_per_key_ = config.num_attention_heads / config.num_key_value_heads;
  is_70b_ = layers_ == 80 && config.num_attention_heads != config.num_key_value_heads;  // llama.cpp's rule
}

const BlockType& BlockRecipe::choose_type(std::string_view tensor, std::uint64_t row_length,
                                          bool has_importance) const {
  const Use use = find_use(tensor);
  const std::int64_t layer = find_layer(tensor);
  const auto choose_from = [&](const Row::Choice& choice) {
    const bool early =
        choice.early_first > 0 ? layer < choice.early_first : choice.early_of > 0 && layer < layers_ / choice.early_of;
    if (!choice.early.empty() && early) return choice.early;
    if (!choice.weighty.empty() && is_weighty(layer, layers_)) return choice.weighty;
    return choice.all;
  };
  std::string_view type;
  if (use == Use::output || (use == Use::embedding && tied_)) {
    const bool fits = row_length % find_named_block_type(row_->base)->elements == 0;
    type = !fits || row_->base == "q8_0" ? "q8_0" : "q6_k";
  } else if (use == Use::values) {
    type = !row_->values_of_many_queries.empty() && heads_per_key_ >= 4 ? row_->values_of_many_queries
                                                                        : choose_from(row_->values);
    if (type.empty()) type = row_->base;
    if (has_8_experts_) type = "q8_0";
    if (is_70b_ && (type == "q3_k" || type == "q4_k")) type = "q5_k";
  } else if (use == Use::keys) {
    if (has_8_experts_) type = "q8_0";
  } else if (use == Use::down) {
    type = has_importance && !row_->down_with_importance.empty() && layer < layers_ / 8 ? row_->down_with_importance
                                                                                        : choose_from(row_->down);
  } else if (use == Use::attention_output) {
    type = !has_8_experts_ ? row_->attention_output : row_->attention_output_of_8_experts ? "q5_k" : std::string_view();
  }
  return *find_named_block_type(type.empty() ? row_->base : type);
}

}  // namespace poise
