// Defines the properties that most decoders of transformers share with Llama: keys of config.json, names and shapes of
// tensors, and the computation. Each family's file has the differences.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bytes/text_table.hpp"
#include "family/decoder_plan.hpp"
#include "family/family.hpp"
#include "family/rope.hpp"
#include "family/text_model.hpp"

namespace poise {

inline constexpr std::string_view kDecoderEmbedding = "model.embed_tokens.weight";
inline constexpr std::string_view kDecoderOutput = "lm_head.weight";
inline constexpr std::string_view kDecoderLayers = "model.layers.";
inline constexpr std::array<std::string_view, 3> kDecoderPrefixes = {"model.", "layers.", "lm_head."};
// The names of a decoder that was saved without its output lack the prefix "model.".
inline constexpr std::array<NameBeginning, 1> kDecoderSpellings = {{{"model.", ""}}};

// The text model of a multimodal directory has its own object in config.json, and its own prefixes of names.
inline constexpr std::string_view kTextConfig = "text_config";
inline constexpr std::array<std::string_view, 3> kTextPrefixes = {"language_model.", "model.language_model.",
                                                                  "lm_head."};
inline constexpr std::array<NameBeginning, 3> kTextSpellings = {{{"model.", "language_model.model."},
                                                                 {"model.", "model.language_model."},
                                                                 {"lm_head.", "language_model.lm_head."}}};
inline constexpr std::array<ComputedTensor, 1> kDecoderComputed = {{{".rotary_emb.inv_freq", "rope_theta"}}};

// Holds defaults of config.json's keys; 0 for required sizes.
struct ConfigDefaults {
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;             // 0: hidden_size / num_attention_heads
  std::int64_t max_position_embeddings = 2048;
  std::int64_t sliding_window = 0;
  float rope_theta = 10000;
  float rms_norm_eps = 1e-6F;
  bool tie_word_embeddings = false;
  std::string_view hidden_act = "silu";
  std::string_view hidden_act_key = "hidden_act";
};
Config read_decoder_config(const ConfigKeys& keys, const ConfigDefaults& defaults);

inline bool has_own_output(const ConfigView& view) { return !view.config.tie_word_embeddings; }

inline constexpr std::array kDecoderFirst =
    std::to_array<TensorRow>({{kDecoderEmbedding, {axis::vocabulary, axis::hidden}}});
inline constexpr std::array kDecoderLast = std::to_array<TensorRow>({
    {"model.norm.weight", {axis::hidden}},
    {kDecoderOutput, {axis::vocabulary, axis::hidden}, has_own_output},
});
inline constexpr std::array kInputNorm = std::to_array<TensorRow>({{"input_layernorm.weight", {axis::hidden}}});
inline constexpr std::array kAttentionRows = std::to_array<TensorRow>({
    {"self_attn.q_proj.weight", {axis::queries, axis::hidden}},
    {"self_attn.k_proj.weight", {axis::keys, axis::hidden}},
    {"self_attn.v_proj.weight", {axis::keys, axis::hidden}},
    {"self_attn.o_proj.weight", {axis::hidden, axis::queries}},
});
inline constexpr std::array kHeadNorms = std::to_array<TensorRow>({
    {"self_attn.q_norm.weight", {axis::head}},
    {"self_attn.k_norm.weight", {axis::head}},
});
inline constexpr std::array kPostAttentionNorm =
    std::to_array<TensorRow>({{"post_attention_layernorm.weight", {axis::hidden}}});
inline constexpr std::array kMlpRows = std::to_array<TensorRow>({
    {"mlp.gate_proj.weight", {axis::inner, axis::hidden}},
    {"mlp.up_proj.weight", {axis::inner, axis::hidden}},
    {"mlp.down_proj.weight", {axis::hidden, axis::inner}},
});
// These functions return true if config.json gives biases to the matrices of attention, and of the feed-forward
// network.
bool has_attention_bias(const ConfigView& view);
bool has_mlp_bias(const ConfigView& view);

constexpr std::array<TensorRow, 3> make_qkv_biases(Needed needed) {
  return {{{"self_attn.q_proj.bias", {axis::queries}, needed},
           {"self_attn.k_proj.bias", {axis::keys}, needed},
           {"self_attn.v_proj.bias", {axis::keys}, needed}}};
}
constexpr std::array<TensorRow, 1> make_o_bias(Needed needed) {
  return {{{"self_attn.o_proj.bias", {axis::hidden}, needed}}};
}
constexpr std::array<TensorRow, 3> make_mlp_biases(Needed needed) {
  return {{{"mlp.gate_proj.bias", {axis::inner}, needed},
           {"mlp.up_proj.bias", {axis::inner}, needed},
           {"mlp.down_proj.bias", {axis::hidden}, needed}}};
}

// This lists the tensors of Llama's layer. attention_bias and mlp_bias decide which biases it has.
inline constexpr std::array kLlamaLayer =
    join_tables(kInputNorm, kAttentionRows, make_qkv_biases(has_attention_bias), make_o_bias(has_attention_bias),
                kPostAttentionNorm, kMlpRows, make_mlp_biases(has_mlp_bias));

// Returns a list for Family::followed: the keys that make_decoder_plan() implements for every family, and `more`.
template <std::size_t kCount>
constexpr auto list_followed_keys(const std::string_view (&more)[kCount]) {
  return join_tables(kRopeObjects, std::to_array(more));
}

// Returns `family` with the first four arguments and the fields that most decoders share. Keeps hidden_act and
// convert_weights if `family` has them.
constexpr Family make_decoder_family(std::string_view model_type, std::string_view transformers_class,
                                     std::string_view title, std::span<const TensorRow> layer, Family family) {
  family.model_type = model_type;
  family.transformers_class = transformers_class;
  family.title = title;
  family.tensors = {.layers = kDecoderLayers, .first = kDecoderFirst, .layer = layer, .last = kDecoderLast};
  if (family.hidden_act.empty()) family.hidden_act = "silu";
  const bool alone = family.nested.empty();
  family.prefixes = alone ? std::span<const std::string_view>(kDecoderPrefixes) : kTextPrefixes;
  family.spellings = alone ? std::span<const NameBeginning>(kDecoderSpellings) : kTextSpellings;
  family.computed = kDecoderComputed;
  family.embedding = kDecoderEmbedding;
  family.output = kDecoderOutput;
  if (family.convert_weights == nullptr) family.convert_weights = keep_text_model;
  return family;
}

// Returns Llama's plan: RMS norms before attention and feed-forward network, and the configuration's window in all
// layers. attention_bias and mlp_bias decide on biases.
DecoderPlan make_decoder_plan(const ConfigView& view, const RopeOptions& rope = {});

// Returns GPT's plan, without the names of modules: layer norms, no rotary embeddings, matrices [in, out], no gate.
DecoderPlan make_gpt_plan(const Config& config);

// Returns plans of q, k and v, all with a bias or all without.
std::vector<Linear> make_qkv_plan(bool bias);

// Returns the activation of that name in config.json. Throws unsupported for unknown names.
ActivationKind find_activation(std::string_view name);

// Returns for each layer whether it has a window: by layer_types or, without that key, by `by_default`. Throws
// invalid_file for a list of another length, and unsupported for other types of layers than "sliding_attention" and
// "full_attention".
std::vector<bool> find_sliding_layers(const ConfigView& view,
                                      bool (*by_default)(const ConfigView& view, std::int64_t layer));

// Sets the window of the layers for which `sliding` is true, and removes that of the others. Throws invalid_file if a
// layer needs a window but the configuration has none.
void set_windows(DecoderPlan& plan, const ConfigView& view, const std::vector<bool>& sliding);

inline bool is_even_layer(const ConfigView&, std::int64_t layer) { return layer % 2 == 0; }

struct SizeKey {
  std::string_view key;
  std::int64_t most;
};
// Returns a sentence for each key that is missing or not from 1 to `most`.
std::vector<std::string> find_size_faults(const ConfigView& view, std::initializer_list<SizeKey> keys);
std::int64_t read_size(const ConfigView& view, std::string_view key);  // 0 if missing or out of range

// Returns the faults of num_local_experts and num_experts_per_tok.
std::vector<std::string> find_expert_faults(const ConfigView& view);

// Returns the number of a key, or `by_default` if it is missing. Throws invalid_file for 0 and less.
float read_positive_number(const ConfigView& view, std::string_view key, float by_default);

inline constexpr std::int64_t kMaxExperts = 4096;

namespace axis {
inline std::uint64_t local_experts(const ConfigView& view) {
  return static_cast<std::uint64_t>(read_size(view, "num_local_experts"));
}
// Returns the number of rows of a matrix that joins gate and up.
inline std::uint64_t gate_and_up(const ConfigView& view) { return 2 * inner(view); }
}  // namespace axis

}  // namespace poise
