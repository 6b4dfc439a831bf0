// What llama.cpp calls the architectures, tensors and hyperparameters that Poise calls as transformers does: a row an architecture.
//
// Source: llama.cpp's src/llama-arch.cpp and conversion/ (v0.5.0), and the modeling files of transformers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace poise::gguf {

// The order of a matrix' rows. Rotary embeddings turn pairs of a head's rows: neighbours in llama.cpp's order, row i and row i + head_dim / 2 in that
// of transformers.
enum class RowOrder : std::uint8_t { same, queries, keys };

struct NameRow {
  std::string_view gguf;
  std::string_view canonical;
  RowOrder rows = RowOrder::same;
};

struct Architecture {
  std::string_view name;           // general.architecture, and the first word of its keys
  std::string_view model_type;     // of config.json
  std::span<const NameRow> whole;  // complete names
  std::span<const NameRow> layer;  // what comes after "blk.3." and "model.layers.3."
};

// A hyperparameter that the two only spell differently. `gguf` comes after the architecture's name and a dot.
struct KeyRow {
  std::string_view gguf;
  std::string_view config;
  bool is_integer;
};
std::span<const KeyRow> key_rows();

// Null: it has no row.
const Architecture* architecture_named(std::string_view name);
// The one that a family is converted to.
const Architecture* architecture_of(std::string_view model_type);

struct TensorName {
  std::string name;
  RowOrder rows = RowOrder::same;
};
// Nothing for a name that the architecture does not have: it stays.
std::optional<TensorName> canonical_name(const Architecture& architecture, std::string_view gguf);
std::optional<TensorName> gguf_name(const Architecture& architecture, std::string_view canonical);

}  // namespace poise::gguf
