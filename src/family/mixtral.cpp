// Describes Mixtral. Keys and defaults are those of MixtralConfig of transformers. The model computes as Mistral does,
// but each token uses num_experts_per_tok of num_local_experts feed-forward networks, with weights that sum to one.
#include "family/families.hpp"

#include <array>

#include "family/decoder_family.hpp"

namespace poise::mixtral {
namespace {

Config read_config(const ConfigKeys& keys) {
  return read_decoder_config(
      keys,
      {.num_key_value_heads = 8, .max_position_embeddings = 131072, .rope_theta = 1000000, .rms_norm_eps = 1e-5F});
}

DecoderPlan plan(const ConfigView& view) {
  DecoderPlan plan = make_decoder_plan(view);
  plan.qkv = make_qkv_plan(false);
  plan.o.bias = false;
  plan.experts = {.count = static_cast<std::size_t>(read_size(view, "num_local_experts")),
                  .used = static_cast<std::size_t>(read_size(view, "num_experts_per_tok")),
                  .router = {"block_sparse_moe.gate"},
                  .list = "block_sparse_moe.experts",
                  .gate = "w1",
                  .up = "w3",
                  .down = "w2"};
  for (LayerPlan& layer : plan.layers) layer.experts = true;
  return plan;
}

constexpr std::array kExpertRows = std::to_array<TensorRow>({
    {"block_sparse_moe.gate.weight", {axis::local_experts, axis::hidden}},
    {"block_sparse_moe.experts.*.w1.weight", {axis::inner, axis::hidden}, nullptr, nullptr, axis::local_experts},
    {"block_sparse_moe.experts.*.w2.weight", {axis::hidden, axis::inner}, nullptr, nullptr, axis::local_experts},
    {"block_sparse_moe.experts.*.w3.weight", {axis::inner, axis::hidden}, nullptr, nullptr, axis::local_experts},
});
constexpr std::array kLayer = join_tables(kInputNorm, kAttentionRows, kPostAttentionNorm, kExpertRows);

constexpr std::array kFollowed = list_followed_keys({"num_local_experts"});

}  // namespace

constexpr Family kMixtralFamily = make_decoder_family(
    "mixtral", "MixtralForCausalLM", "Mixtral", kLayer,
    {.read_config = read_config, .faults = find_expert_faults, .plan = plan, .followed = kFollowed});

}  // namespace poise::mixtral
