// Describes Phi-3. Keys and defaults are those of Phi3Config of transformers. The model computes as Llama does, but one
// matrix has the rows of q, k and v, and another has the rows of gate and up. In some models, only a part of each head
// rotates (partial_rotary_factor), or long texts have other frequencies (longrope).
#include "family/families.hpp"

#include <array>

#include "family/decoder_family.hpp"

namespace poise::phi3 {
namespace {

Config read_config(const ConfigKeys& keys) {
  return read_decoder_config(keys, {.max_position_embeddings = 4096, .rms_norm_eps = 1e-5F});
}

DecoderPlan plan(const ConfigView& view) {
  DecoderPlan plan = make_decoder_plan(view, {.partial = true, .su = "longrope", .original_positions = 4096});
  plan.qkv = {{"self_attn.qkv_proj"}};
  plan.o.bias = false;
  plan.mlp = {{"mlp.gate_up_proj"}};
  plan.down.bias = false;
  return plan;
}

std::uint64_t queries_keys_values(const ConfigView& view) { return axis::queries(view) + 2 * axis::keys(view); }

constexpr std::array kLayer = std::to_array<TensorRow>({
    {"input_layernorm.weight", {axis::hidden}},
    {"self_attn.qkv_proj.weight", {queries_keys_values, axis::hidden}},
    {"self_attn.o_proj.weight", {axis::hidden, axis::queries}},
    {"post_attention_layernorm.weight", {axis::hidden}},
    {"mlp.gate_up_proj.weight", {axis::gate_and_up, axis::hidden}},
    {"mlp.down_proj.weight", {axis::hidden, axis::inner}},
});

constexpr std::array kFollowed = list_followed_keys({"partial_rotary_factor"});

}  // namespace

constexpr Family kPhi3Family = make_decoder_family("phi3", "Phi3ForCausalLM", "Phi-3", kLayer,
                                                   {.read_config = read_config, .plan = plan, .followed = kFollowed});

}  // namespace poise::phi3
