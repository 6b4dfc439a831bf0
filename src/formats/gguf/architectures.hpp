// Lists llama.cpp's names of architectures, tensors and hyperparameters, next to those of transformers, which Poise
// uses: a row for each architecture.
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

// Names the changes that llama.cpp's conversion makes to tensors. Poise makes them when it writes, and undoes them when
// it reads.
enum class Change : std::uint8_t {
  none,
  queries,     // rows of rotated matrices: the two rows of a pair are neighbours in llama.cpp, and half a head apart in
               // transformers
  keys,        // the same, with as many heads as keys have
  plus_one,    // llama.cpp adds 1 to each element
  transposed,  // [out, in] in llama.cpp, [in, out] in transformers
  stacked,  // the experts' matrices and biases: one tensor [experts, out, in] or [experts, out] in llama.cpp, a tensor
            // each in Poise
};

struct NameRow {
  std::string_view gguf;
  std::string_view canonical;  // transformers' name; in both names, * stands for an expert's number
  Change change = Change::none;
};

// Describes a hyperparameter, with its keys in GGUF and in config.json.
struct KeyRow {
  enum class Kind : std::uint8_t { integer, number };
  std::string_view gguf;  // the key without the architecture's name and the dot in front
  std::string_view config;
  Kind kind = Kind::integer;
  std::string_view typed = {};  // the key in config_to_attributes(), if it is another one
  // Holds the family's default if it differs from llama.cpp's. The writer adds this number if config.json lacks the
  // key.
  std::optional<double> written_by_default = {};
  // Names the key of config.json whose number is llama.cpp's default. The reader uses this number if a file lacks the
  // row's key.
  std::string_view read_by_default = {};
  // Names a key of config.json. Reading leaves out a number that equals that of this key.
  std::string_view left_out_if_same = {};
  // Holds llama.cpp's default if files cannot hold null or 0, which mean "none" in config.json.
  std::optional<double> never_none = {};
};

// Describes a hyperparameter that has no key in llama.cpp, and the value with which llama.cpp computes.
struct FixedKey {
  std::string_view config;
  std::variant<std::monostate, bool, std::string_view> value;  // std::monostate: as if the key is missing
  bool is_explicit;          // true: transformers has another default, so reading adds the key
  bool is_required = false;  // llama.cpp does not load a file of a model with another value
};

// Describes a tensor of the first layer whose presence implies a configuration's key.
struct ImpliedFlag {
  std::string_view tensor;
  std::string_view config;  // reading sets this key to true
};

inline constexpr std::string_view kEmbedding = "token_embd.weight";

// Most architectures share the following rows.

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

// llama.cpp reads a base for the layers with a window. Families other than Gemma 3 have only one base, so Poise does
// not run a model with another one here.
inline constexpr KeyRow kWindowBase = {
    .gguf = "rope.freq_base_swa", .config = "rope_local_base_freq", .kind = kNumber, .left_out_if_same = "rope_theta"};

inline constexpr std::array kSilu = std::to_array<FixedKey>({{"hidden_act", std::string_view("silu"), false}});

struct Architecture {
  std::string_view name;                    // general.architecture, and the first word of its keys
  std::string_view model_type;              // the model_type in config.json
  std::span<const NameRow> whole = kWhole;  // complete names
  std::span<const NameRow> layer;           // names after "blk.3." and "model.layers.3."
  std::string_view layers = "model.layers.";
  std::string_view omitted = {};  // a prefix of transformers' names that some checkpoints omit
  bool has_experts = false;       // distinguishes architectures with the same name

  std::span<const KeyRow> keys = {};  // these take precedence over shared_keys
  std::span<const KeyRow> shared_keys = kSharedKeys;
  std::span<const FixedKey> fixed = kSilu;
  std::span<const ImpliedFlag> implied_flags = {};
  bool rotates = true;                   // rotary embeddings
  bool rotates_parts = false;            // a part of each head may rotate; else llama.cpp ends with an error
  bool has_usual_heads = false;          // llama.cpp requires heads of hidden_size / num_attention_heads elements
  bool scales_yarn_by_log = false;       // rope.scaling.yarn_log_multiplier
  bool holds_frequency_factors = false;  // rope_freqs.weight
  bool holds_long_factors = false;       // rope_factors_long.weight, rope_factors_short.weight
  // Counted from 1, layers window_period, 2 * window_period, ... have no window, unless a file lists the layers with a
  // window. 0: llama.cpp ignores windows.
  std::uint64_t window_period = 0;
  std::uint64_t usual_window = 0;  // llama.cpp's default of the window; 0: none
  bool needs_window = false;       // llama.cpp requires a window
  bool explicit_windows = false;   // true: transformers has no window_period, so reading adds the list of layers
  // Counted from 1, layers unrotated_period, 2 * unrotated_period, ... do not rotate. 0: all rotate.
  std::uint64_t unrotated_period = 0;
  bool needs_output = false;  // llama.cpp requires an output matrix, even if it equals the embedding
  // If not 0, config.json has query_pre_attn_scalar, which scales attention. llama.cpp ignores it, and uses the length
  // of a head or, for models with this many layers, hidden_size / num_attention_heads.
  std::uint64_t wide_scale_layers = 0;
};

// Returns the architecture with that general.architecture; null for an unknown name. `has_experts` chooses between
// architectures of one name.
const Architecture* find_named_architecture(std::string_view name, bool has_experts);
// Returns the architecture to which Poise converts a family; null if it has none.
const Architecture* find_family_architecture(std::string_view model_type);
// Returns the model types of all architectures, each once.
std::vector<std::string_view> list_model_types();

struct TensorName {
  std::string name;
  Change change = Change::none;
  std::optional<std::uint64_t> expert = {};  // the expert's number, if the name has one
};
// Each function translates a tensor's name. It returns std::nullopt for a name that the architecture lacks; the tensor
// then keeps its name. find_poise_name() returns transformers' name with a * in place of an expert's number;
// find_gguf_name() takes transformers' name with the number itself.
std::optional<TensorName> find_poise_name(const Architecture& architecture, std::string_view gguf);
std::optional<TensorName> find_gguf_name(const Architecture& architecture, std::string_view canonical);
// Returns the name of one expert's tensor. `canonical` has a * in place of its number.
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
