// What llama.cpp calls the architectures, tensors and hyperparameters that Poise calls as transformers does: a row an
// architecture.
//
// Source: llama.cpp's src/llama-arch.cpp and conversion/ (v0.5.0), and the modeling files of transformers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace poise::gguf {

// What llama.cpp's conversion does to a tensor. Reading undoes it, writing does it.
enum class Change : std::uint8_t {
  none,
  queries,  // rows of rotating matrices: pairs of a head's rows are neighbours in llama.cpp, row i and row i + head_dim
            // / 2 in transformers
  keys,     // the same, with as many heads as keys have
  plus_one,    // 1 is added to each element
  transposed,  // [out, in] in llama.cpp, [in, out] in transformers
  stacked,  // the experts' matrices and biases: one tensor [experts, out, in] or [experts, out] in llama.cpp, a tensor
            // each in Poise
};

struct NameRow {
  std::string_view gguf;
  std::string_view canonical;  // of stacked tensors with a * for the expert's number
  Change change = Change::none;
};

// A hyperparameter that the two only spell differently.
struct KeyRow {
  enum class Kind : std::uint8_t { integer, number };
  std::string_view gguf;  // comes after the architecture's name and a dot
  std::string_view config;
  Kind kind = Kind::integer;
  std::string_view typed = {};  // what config_to_attributes() calls it, where that is another name
  // What an absent key means, where llama.cpp and the family differ. The number that the family takes where config.json
  // has no such key: it is written.
  std::optional<double> written_by_default = {};
  // The key of config.json whose number llama.cpp takes where a file has no such key: it is read.
  std::string_view read_by_default = {};
  // The number that llama.cpp takes where a file has no such key. Null or 0 in config.json is none, which a file cannot
  // say.
  std::optional<double> never_none = {};
};

// A hyperparameter that llama.cpp has no key for: it computes as with this value.
struct FixedKey {
  std::string_view config;
  std::variant<std::monostate, bool, std::string_view> value;  // the first: as if it were not there
  bool is_explicit;  // transformers has another default: a configuration that is read says so
};

// A tensor of the first layer that is there because of a configuration's key.
struct ImpliedFlag {
  std::string_view tensor;
  std::string_view config;  // true then
};

struct Architecture {
  std::string_view name;           // general.architecture, and the first word of its keys
  std::string_view model_type;     // of config.json
  std::span<const NameRow> whole;  // complete names
  std::span<const NameRow> layer;  // what comes after "blk.3." and "model.layers.3."
  std::string_view layers = "model.layers.";
  std::string_view omitted = {};  // canonical names begin so, and some checkpoints leave it out
  bool has_experts = false;       // tells architectures of one name apart

  std::span<const KeyRow> keys = {};         // its own; they come before shared ones of the same key
  std::span<const KeyRow> shared_keys = {};  // with others
  std::span<const FixedKey> fixed = {};
  std::span<const ImpliedFlag> implied_flags = {};
  bool rotates = true;                   // rotary embeddings
  bool holds_frequency_factors = false;  // rope_freqs.weight
  bool holds_long_factors = false;       // rope_factors_long.weight, rope_factors_short.weight
  std::uint64_t window_period =
      0;  // every so many-th layer has no window, where a file does not say which; 0: llama.cpp does not ask
  std::uint64_t usual_window = 0;  // where a file does not say one, and llama.cpp asks; 0: none
  bool explicit_windows =
      false;  // transformers has no such period: a configuration that is read says which layers have windows
  std::uint64_t unrotated_period = 0;  // every so many-th layer does not rotate, whatever the file says; 0: all do
  bool needs_output = false;           // the file has an output matrix, although it is the embedding
  // The configuration says by which number attention is scaled. llama.cpp takes the head's length, or, of models of so
  // many layers, hidden_size / num_attention_heads. 0: the configuration does not say.
  std::uint64_t wide_scale_layers = 0;
};

// Null: it has no row.
const Architecture* architecture_named(std::string_view name, bool has_experts);
// The one that a family is converted to.
const Architecture* architecture_of(std::string_view model_type);

struct TensorName {
  std::string name;
  Change change = Change::none;
  std::optional<std::uint64_t> expert = {};  // of stacked tensors: which of them this is
};
// Nothing for a name that the architecture does not have: it stays. Of stacked tensors the canonical name has a *.
std::optional<TensorName> canonical_name(const Architecture& architecture, std::string_view gguf);
std::optional<TensorName> gguf_name(const Architecture& architecture, std::string_view canonical);
// The name of one of the stacked tensors.
std::string expert_name(std::string_view canonical, std::uint64_t expert);

}  // namespace poise::gguf
