// Lists llama.cpp's names of tensors and keys, for each architecture.
#include "formats/gguf/architectures.hpp"

namespace poise::gguf::architectures {
namespace {

constexpr std::array kNorms = std::to_array<NameRow>({
    {"attn_norm.weight", "input_layernorm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
});

constexpr std::array kValues = std::to_array<NameRow>({
    {"attn_v.weight", "self_attn.v_proj.weight"},
    {"attn_output.weight", "self_attn.o_proj.weight"},
});

// llama.cpp rotates neighbouring rows together in Llama and its relatives.
constexpr std::array kPairs = std::to_array<NameRow>({
    {"attn_q.weight", "self_attn.q_proj.weight", Change::queries},
    {"attn_k.weight", "self_attn.k_proj.weight", Change::keys},
});

// In other models, llama.cpp rotates rows in the order of transformers.
constexpr std::array kHalves = std::to_array<NameRow>({
    {"attn_q.weight", "self_attn.q_proj.weight"},
    {"attn_k.weight", "self_attn.k_proj.weight"},
});

constexpr std::array kBiases = std::to_array<NameRow>({
    {"attn_q.bias", "self_attn.q_proj.bias"},
    {"attn_k.bias", "self_attn.k_proj.bias"},
    {"attn_v.bias", "self_attn.v_proj.bias"},
});

constexpr std::array kOutputBias = std::to_array<NameRow>({{"attn_output.bias", "self_attn.o_proj.bias"}});

constexpr std::array kHeadNorms = std::to_array<NameRow>({
    {"attn_q_norm.weight", "self_attn.q_norm.weight"},
    {"attn_k_norm.weight", "self_attn.k_norm.weight"},
});

constexpr std::array kMlp = std::to_array<NameRow>({
    {"ffn_gate.weight", "mlp.gate_proj.weight"},
    {"ffn_up.weight", "mlp.up_proj.weight"},
    {"ffn_down.weight", "mlp.down_proj.weight"},
});

constexpr std::array kExperts = std::to_array<NameRow>({
    {"ffn_gate_exps.weight", "mlp.experts.*.gate_proj.weight", Change::stacked},
    {"ffn_up_exps.weight", "mlp.experts.*.up_proj.weight", Change::stacked},
    {"ffn_down_exps.weight", "mlp.experts.*.down_proj.weight", Change::stacked},
});

// llama.cpp has no biases for output and feed-forward matrices of SmolLM3.
constexpr std::array kSmolLm3Layer = join_tables(kNorms, kPairs, kValues, kMlp,
                                                 std::to_array<NameRow>({
                                                     {"attn_q.bias", "self_attn.q_proj.bias", Change::queries},
                                                     {"attn_k.bias", "self_attn.k_proj.bias", Change::keys},
                                                     {"attn_v.bias", "self_attn.v_proj.bias"},
                                                 }));

constexpr std::array kLlamaLayer = join_tables(kSmolLm3Layer, kOutputBias,
                                               std::to_array<NameRow>({
                                                   {"ffn_gate.bias", "mlp.gate_proj.bias"},
                                                   {"ffn_up.bias", "mlp.up_proj.bias"},
                                                   {"ffn_down.bias", "mlp.down_proj.bias"},
                                               }));

constexpr std::array kMixtralLayer =
    join_tables(kNorms, kPairs, kValues,
                std::to_array<NameRow>({
                    {"ffn_gate_inp.weight", "block_sparse_moe.gate.weight"},
                    {"ffn_gate_exps.weight", "block_sparse_moe.experts.*.w1.weight", Change::stacked},
                    {"ffn_down_exps.weight", "block_sparse_moe.experts.*.w2.weight", Change::stacked},
                    {"ffn_up_exps.weight", "block_sparse_moe.experts.*.w3.weight", Change::stacked},
                    // Files from before April 2024 have a tensor for each expert.
                    {"ffn_gate.*.weight", "block_sparse_moe.experts.*.w1.weight"},
                    {"ffn_down.*.weight", "block_sparse_moe.experts.*.w2.weight"},
                    {"ffn_up.*.weight", "block_sparse_moe.experts.*.w3.weight"},
                }));

// This key's factor scales attention by position, which Poise does not compute.
constexpr std::array kMistral3Keys =
    std::to_array<KeyRow>({{"attention.temperature_scale", "llama_4_scaling_beta", kNumber}});

constexpr std::array kLlamaImpliedFlags =
    std::to_array<ImpliedFlag>({{"self_attn.q_proj.bias", "attention_bias"}, {"mlp.gate_proj.bias", "mlp_bias"}});

}  // namespace

constinit const Architecture llama = {.name = "llama",
                                      .model_type = "llama",
                                      .layer = kLlamaLayer,
                                      .implied_flags = kLlamaImpliedFlags,
                                      .holds_frequency_factors = true,
                                      .holds_long_factors = true};

constinit const Architecture mistral = {.name = "llama", .model_type = "mistral", .layer = kLlamaLayer};

constinit const Architecture mixtral = {
    .name = "llama", .model_type = "mixtral", .layer = kMixtralLayer, .has_experts = true};

// llama.cpp's conversion uses this row's name for Mistral Small 3.1 and later.
constinit const Architecture mistral3 = {.name = "mistral3",
                                         .model_type = "mistral",
                                         .layer = kLlamaLayer,
                                         .keys = kMistral3Keys,
                                         .scales_yarn_by_log = true};

constinit const Architecture smollm3 = {.name = "smollm3",
                                        .model_type = "smollm3",
                                        .layer = kSmolLm3Layer,
                                        .implied_flags = kLlamaImpliedFlags,
                                        .unrotated_period = 4};

namespace {

// In Qwen's layers, llama.cpp supports biases of q, k and v, but no others.
constexpr std::array kQwenLayer = join_tables(kNorms, kHalves, kValues, kBiases, kHeadNorms, kMlp, kExperts,
                                              std::to_array<NameRow>({{"ffn_gate_inp.weight", "mlp.gate.weight"}}));

constexpr std::array kQwen3MoeKeys =
    std::to_array<KeyRow>({{"expert_count", "num_experts"}, {"expert_count", "num_local_experts"}});

constexpr std::array kQwen3MoeFixed = join_tables(kSilu, std::to_array<FixedKey>({{"norm_topk_prob", true, true}}));

}  // namespace

constinit const Architecture qwen2 = {
    .name = "qwen2", .model_type = "qwen2", .layer = kQwenLayer, .has_usual_heads = true};

constinit const Architecture qwen3 = {
    .name = "qwen3", .model_type = "qwen3", .layer = kQwenLayer, .implied_flags = kAttentionBiasFlag};

constinit const Architecture qwen3_moe = {.name = "qwen3moe",
                                          .model_type = "qwen3_moe",
                                          .layer = kQwenLayer,
                                          .has_experts = true,
                                          .keys = kQwen3MoeKeys,
                                          .fixed = kQwen3MoeFixed,
                                          .implied_flags = kAttentionBiasFlag};

namespace {

// Gemma 1 and 2 have no output matrix in llama.cpp.
constexpr std::array kGemmaWhole = std::to_array<NameRow>({
    {kEmbedding, "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight", Change::plus_one},
});

constexpr std::array kGemma3Whole =
    join_tables(kGemmaWhole, std::to_array<NameRow>({{"output.weight", "lm_head.weight"}}));

constexpr std::array kGemmaLayer =
    join_tables(kHalves, kValues, kMlp,
                std::to_array<NameRow>({
                    {"attn_norm.weight", "input_layernorm.weight", Change::plus_one},
                    {"ffn_norm.weight", "post_attention_layernorm.weight", Change::plus_one},
                }));

// Gemma 2 and 3 have norms before and after attention and feed-forward network.
constexpr std::array kGemma2Layer =
    join_tables(kHalves, kValues, kMlp,
                std::to_array<NameRow>({
                    {"attn_norm.weight", "input_layernorm.weight", Change::plus_one},
                    {"attn_q_norm.weight", "self_attn.q_norm.weight", Change::plus_one},
                    {"attn_k_norm.weight", "self_attn.k_norm.weight", Change::plus_one},
                    {"post_attention_norm.weight", "post_attention_layernorm.weight", Change::plus_one},
                    {"ffn_norm.weight", "pre_feedforward_layernorm.weight", Change::plus_one},
                    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight", Change::plus_one},
                }));

constexpr std::array kGemma2Keys = std::to_array<KeyRow>({
    {.gguf = "attn_logit_softcapping", .config = "attn_logit_softcapping", .kind = kNumber, .never_none = 50},
    {.gguf = "final_logit_softcapping", .config = "final_logit_softcapping", .kind = kNumber, .never_none = 30},
    kWindowBase,
});

constexpr std::array kGemma3Keys = std::to_array<KeyRow>({
    {"final_logit_softcapping", "final_logit_softcapping", kNumber},
    {"rope.freq_base_swa", "rope_local_base_freq", kNumber},
});

constexpr std::array kGemmaFixed =
    std::to_array<FixedKey>({{"hidden_activation", std::string_view("gelu_pytorch_tanh"), false}});

constexpr std::array kGemma3Fixed =
    join_tables(kGemmaFixed, std::to_array<FixedKey>({{"attn_logit_softcapping", {}, false}}));

}  // namespace

constinit const Architecture gemma = {.name = "gemma",
                                      .model_type = "gemma",
                                      .whole = kGemmaWhole,
                                      .layer = kGemmaLayer,
                                      .fixed = kGemmaFixed,
                                      .rotates_parts = true};

constinit const Architecture gemma2 = {.name = "gemma2",
                                       .model_type = "gemma2",
                                       .whole = kGemmaWhole,
                                       .layer = kGemma2Layer,
                                       .keys = kGemma2Keys,
                                       .fixed = kGemmaFixed,
                                       .rotates_parts = true,
                                       .window_period = 2,
                                       .usual_window = 4096,
                                       .wide_scale_layers = 46};

constinit const Architecture gemma3_text = {.name = "gemma3",
                                            .model_type = "gemma3_text",
                                            .whole = kGemma3Whole,
                                            .layer = kGemma2Layer,
                                            .keys = kGemma3Keys,
                                            .fixed = kGemma3Fixed,
                                            .rotates_parts = true,
                                            .window_period = 6,
                                            .wide_scale_layers = 62};

namespace {

constexpr std::array kGpt2Whole = std::to_array<NameRow>({
    {kEmbedding, "transformer.wte.weight"},
    {"position_embd.weight", "transformer.wpe.weight"},
    {"output_norm.weight", "transformer.ln_f.weight"},
    {"output_norm.bias", "transformer.ln_f.bias"},
    {"output.weight", "lm_head.weight"},
});

constexpr std::array kGpt2Layer = std::to_array<NameRow>({
    {"attn_norm.weight", "ln_1.weight"},
    {"attn_norm.bias", "ln_1.bias"},
    {"attn_qkv.weight", "attn.c_attn.weight", Change::transposed},
    {"attn_qkv.bias", "attn.c_attn.bias"},
    {"attn_output.weight", "attn.c_proj.weight", Change::transposed},
    {"attn_output.bias", "attn.c_proj.bias"},
    {"ffn_norm.weight", "ln_2.weight"},
    {"ffn_norm.bias", "ln_2.bias"},
    {"ffn_up.weight", "mlp.c_fc.weight", Change::transposed},
    {"ffn_up.bias", "mlp.c_fc.bias"},
    {"ffn_down.weight", "mlp.c_proj.weight", Change::transposed},
    {"ffn_down.bias", "mlp.c_proj.bias"},
});

constexpr std::array kGpt2Keys = std::to_array<KeyRow>({
    {"context_length", "n_positions", kInteger, "max_position_embeddings"},
    {"embedding_length", "n_embd", kInteger, "hidden_size"},
    {"block_count", "n_layer", kInteger, "num_hidden_layers"},
    {"feed_forward_length", "n_inner", kInteger, "intermediate_size"},
    {"attention.head_count", "n_head", kInteger, "num_attention_heads"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon", kNumber, "rms_norm_eps"},
    {"vocab_size", "vocab_size"},
});

constexpr std::array kGpt2Fixed = std::to_array<FixedKey>({
    {"activation_function", std::string_view("gelu_new"), false},
    {"scale_attn_weights", true, false},
    {"scale_attn_by_inverse_layer_idx", false, false},
});

}  // namespace

constinit const Architecture gpt2 = {.name = "gpt2",
                                     .model_type = "gpt2",
                                     .whole = kGpt2Whole,
                                     .layer = kGpt2Layer,
                                     .layers = "transformer.h.",
                                     .omitted = "transformer.",
                                     .keys = kGpt2Keys,
                                     .shared_keys = {},
                                     .fixed = kGpt2Fixed,
                                     .rotates = false};

namespace {

constexpr std::array kGptOssLayer =
    join_tables(kHalves, kValues, kBiases, kOutputBias, kExperts,
                std::to_array<NameRow>({
                    {"attn_norm.weight", "input_layernorm.weight"},
                    {"attn_sinks.weight", "self_attn.sinks"},
                    {"post_attention_norm.weight", "post_attention_layernorm.weight"},
                    {"ffn_gate_inp.weight", "mlp.router.weight"},
                    {"ffn_gate_inp.bias", "mlp.router.bias"},
                    {"ffn_gate_exps.bias", "mlp.experts.*.gate_proj.bias", Change::stacked},
                    {"ffn_up_exps.bias", "mlp.experts.*.up_proj.bias", Change::stacked},
                    {"ffn_down_exps.bias", "mlp.experts.*.down_proj.bias", Change::stacked},
                }));

// config.json of gpt-oss has one feed-forward length, intermediate_size.
constexpr std::array kGptOssKeys = std::to_array<KeyRow>({
    {"expert_feed_forward_length", "intermediate_size"},
    kWindowBase,
});

constexpr std::array kGptOssFixed =
    join_tables(kSilu, std::to_array<FixedKey>({{"attention_bias", true, false, true}}));

}  // namespace

constinit const Architecture gpt_oss = {.name = "gpt-oss",
                                        .model_type = "gpt_oss",
                                        .layer = kGptOssLayer,
                                        .has_experts = true,
                                        .keys = kGptOssKeys,
                                        .fixed = kGptOssFixed,
                                        .implied_flags = kAttentionBiasFlag,
                                        .window_period = 2,
                                        .needs_window = true,
                                        .needs_output = true};

namespace {

constexpr std::array kOlmo2Layer = join_tables(kHalves, kValues, kHeadNorms, kMlp,
                                               std::to_array<NameRow>({
                                                   {"post_attention_norm.weight", "post_attention_layernorm.weight"},
                                                   {"post_ffw_norm.weight", "post_feedforward_layernorm.weight"},
                                               }));

}  // namespace

constinit const Architecture olmo2 = {.name = "olmo2",
                                      .model_type = "olmo2",
                                      .layer = kOlmo2Layer,
                                      .has_usual_heads = true,
                                      .window_period = 4,
                                      .explicit_windows = true,
                                      .needs_output = true};

namespace {

constexpr std::array kPhi3Layer = join_tables(kNorms, std::to_array<NameRow>({
                                                          {"attn_qkv.weight", "self_attn.qkv_proj.weight"},
                                                          {"attn_output.weight", "self_attn.o_proj.weight"},
                                                          {"ffn_up.weight", "mlp.gate_up_proj.weight"},
                                                          {"ffn_down.weight", "mlp.down_proj.weight"},
                                                      }));

constexpr std::array kPhi3Keys = std::to_array<KeyRow>({{.gguf = "rope.scaling.original_context_length",
                                                         .config = "original_max_position_embeddings",
                                                         .written_by_default = 4096,
                                                         .read_by_default = "max_position_embeddings"}});

}  // namespace

constinit const Architecture phi3 = {.name = "phi3",
                                     .model_type = "phi3",
                                     .layer = kPhi3Layer,
                                     .keys = kPhi3Keys,
                                     .rotates_parts = true,
                                     .has_usual_heads = true,
                                     .holds_long_factors = true};

}  // namespace poise::gguf::architectures
