// llama.cpp's names of architectures, tensors and hyperparameters, and transformers' names, which Poise uses: a row for
// each architecture.
//
// Source: llama.cpp's src/llama-arch.cpp and conversion/ (v0.5.0), and the modeling files of transformers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bytes/text_table.hpp"

namespace poise::gguf {

// Names the changes of tensors by llama.cpp's conversion. Writing makes them, reading undoes them.
enum class Change : std::uint8_t {
  none,
  queries,   // rows of rotated matrices: pairs of a head's rows are neighbours in llama.cpp, row i and row i + head_dim
             // / 2 in transformers
  keys,      // the same, with as many heads as keys have
  plus_one,  // 1 is added to each element
  transposed,  // [out, in] in llama.cpp, [in, out] in transformers
  stacked,  // the experts' matrices and biases: one tensor [experts, out, in] or [experts, out] in llama.cpp, a tensor
            // each in Poise
};

struct NameRow {
  std::string_view gguf;
  std::string_view canonical;  // of stacked tensors with a * for the expert's number
  Change change = Change::none;
};

// Describes a hyperparameter with two spellings.
struct KeyRow {
  enum class Kind : std::uint8_t { integer, number };
  std::string_view gguf;  // follows the architecture's name and a dot
  std::string_view config;
  Kind kind = Kind::integer;
  std::string_view typed = {};  // its name in config_to_attributes(), if different
  // The family's default, if it differs from llama.cpp's: written when config.json lacks the key.
  std::optional<double> written_by_default = {};
  // The key of config.json whose number is llama.cpp's default: read when a file lacks the key.
  std::string_view read_by_default = {};
  // llama.cpp's default if a file cannot express "none", which is null or 0 in config.json.
  std::optional<double> never_none = {};
};

// Describes a hyperparameter without a key in llama.cpp, which computes with this value.
struct FixedKey {
  std::string_view config;
  std::variant<std::monostate, bool, std::string_view> value;  // the first: as if absent
  bool is_explicit;                                            // transformers has another default: reading adds the key
};

// Describes a tensor of the first layer whose presence implies a configuration's key.
struct ImpliedFlag {
  std::string_view tensor;
  std::string_view config;  // then true
};

inline constexpr std::string_view kEmbedding = "token_embd.weight";

// Rows that most architectures share.

inline constexpr std::array kWhole = std::to_array<NameRow>({
    {kEmbedding, "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
});

inline constexpr auto kNumber = KeyRow::Kind::number;
inline constexpr auto kInteger = KeyRow::Kind::integer;

inline constexpr std::array kSharedKeys = std::to_array<KeyRow>({
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.sliding_window", "sliding_window"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", kNumber},
    {"rope.freq_base", "rope_theta", kNumber},
    {"vocab_size", "vocab_size"},
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
});

inline constexpr std::array kSilu = std::to_array<FixedKey>({{"hidden_act", std::string_view("silu"), false}});

struct Architecture {
  std::string_view name;                    // general.architecture, and the first word of its keys
  std::string_view model_type;              // of config.json
  std::span<const NameRow> whole = kWhole;  // complete names
  std::span<const NameRow> layer;           // what follows "blk.3." and "model.layers.3."
  std::string_view layers = "model.layers.";
  std::string_view omitted = {};  // a prefix of canonical names that some checkpoints omit
  bool has_experts = false;       // distinguishes architectures with the same name

  std::span<const KeyRow> keys = {};  // they take precedence over shared ones
  std::span<const KeyRow> shared_keys = kSharedKeys;
  std::span<const FixedKey> fixed = kSilu;
  std::span<const ImpliedFlag> implied_flags = {};
  bool rotates = true;                   // rotary embeddings
  bool holds_frequency_factors = false;  // rope_freqs.weight
  bool holds_long_factors = false;       // rope_factors_long.weight, rope_factors_short.weight
  std::uint64_t window_period =
      0;  // every such layer has no window, if a file does not list them; 0: llama.cpp does not ask
  std::uint64_t usual_window = 0;      // the default if llama.cpp asks for a window; 0: none
  bool explicit_windows = false;       // transformers has no such period: reading adds the list of layers
  std::uint64_t unrotated_period = 0;  // every such layer does not rotate, in any file; 0: all rotate
  bool needs_output = false;           // llama.cpp requires an output matrix, even one that equals the embedding
  // The configuration gives the number that scales attention. llama.cpp uses the head's length or, for models with this
  // many layers, hidden_size / num_attention_heads. 0: the configuration gives none.
  std::uint64_t wide_scale_layers = 0;
};

// Returns null for an unknown name.
const Architecture* find_named_architecture(std::string_view name, bool has_experts);
// Returns the architecture to which a family is converted.
const Architecture* find_family_architecture(std::string_view model_type);
// Returns the families that are converted.
std::vector<std::string_view> list_model_types();

struct TensorName {
  std::string name;
  Change change = Change::none;
  std::optional<std::uint64_t> expert = {};  // of stacked tensors: the expert
};
// Return std::nullopt for a name that the architecture lacks: it stays. The canonical name of stacked tensors has a *.
std::optional<TensorName> find_poise_name(const Architecture& architecture, std::string_view gguf);
std::optional<TensorName> find_gguf_name(const Architecture& architecture, std::string_view canonical);
// Returns the name of one expert's tensor.
std::string make_expert_name(std::string_view canonical, std::uint64_t expert);

inline constexpr std::array kAttentionBiasFlag =
    std::to_array<ImpliedFlag>({{"self_attn.q_proj.bias", "attention_bias"}});

namespace architectures {

extern const Architecture llama;
extern const Architecture mistral;
extern const Architecture mixtral;
extern const Architecture mistral3;
extern const Architecture qwen2;
extern const Architecture qwen3;
extern const Architecture qwen3_moe;
extern const Architecture gemma;
extern const Architecture gemma2;
extern const Architecture gemma3_text;
extern const Architecture phi3;
extern const Architecture gpt2;
extern const Architecture olmo2;
extern const Architecture gpt_oss;
extern const Architecture smollm3;

}  // namespace architectures

}  // namespace poise::gguf
