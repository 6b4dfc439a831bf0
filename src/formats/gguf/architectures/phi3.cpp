// llama.cpp's names of tensors and keys for Phi-3.
#include "formats/gguf/architectures/rows.hpp"

namespace poise::gguf::architectures {
namespace {

constexpr std::array kPhi3Layer = std::to_array<NameRow>({
    {"attn_norm.weight", "input_layernorm.weight"},
    {"attn_qkv.weight", "self_attn.qkv_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"ffn_up.weight", "mlp.gate_up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
});

constexpr std::array kPhi3Keys = std::to_array<KeyRow>({{.gguf = "rope.scaling.original_context_length",
                                                         .config = "original_max_position_embeddings",
                                                         .written_by_default = 4096,
                                                         .read_by_default = "max_position_embeddings"}});

}  // namespace

constinit const Architecture phi3 = {.name = "phi3",
                                     .model_type = "phi3",
                                     .whole = kWhole,
                                     .layer = kPhi3Layer,
                                     .keys = kPhi3Keys,
                                     .shared_keys = kSharedKeys,
                                     .fixed = kSilu,
                                     .holds_long_factors = true};

}  // namespace poise::gguf::architectures
