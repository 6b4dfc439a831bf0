// Reads the sections of ALT files: general (seven texts about the model), parameters, tokenizer and tensors. Declares
// the functions and types that readers and writers share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/model.hpp>

#include "formats/alt/file_reader.hpp"
#include "formats/alt/write_sections.hpp"

namespace poise::alt {

// Reads the general section. Requires: the reader is past section_size. Leaves it past the last field.
Card read_general(FileReader& reader);

// Returns the parameters of a model without configuration: zeros and an empty hidden_act.
Config make_empty_config();

// Throws unsupported if the sections of a version cannot hold the model's configuration: its family is unknown, keys of
// config.json change the computation, or the model has no output matrix, which readers could not know.
void require_holdable_config(const Model& model, int version);

// Throws unsupported if a reader would find another order than `order` in the last four fields of a section of version
// 2. `config` holds the values of the section.
void require_order(const SectionWriter& section, const Config& config, ParameterOrder order);

// Reads and returns the parameters. Returns std::nullopt if all of them are zero or empty. Requires: the reader is past
// section_size. Leaves it past the last field.
std::optional<Config> read_parameters_v2(FileReader& reader);

// Holds the parameters section of version 1. `config` has no value if the configuration's fields are all zero.
struct ParametersV1 {
  std::string model_type;
  std::optional<Config> config;
  std::int32_t context_length = 0;
  std::int32_t data_type = 0;
  std::uint64_t data_type_at = 0;  // its offset in the file
};
ParametersV1 read_parameters_v1(FileReader& reader);

// Returns the data_type that version 1 writes into the parameters section: the code of float16 if more elements are
// float16 than float32, else that of float32.
std::int32_t find_prevailing_type(const Model& model);

// Reads the tokenizer section to its end, padding included. Requires: the reader is past section_size. Returns
// std::nullopt, for a model without vocabulary, if the section has no tokens, all ids are -1, and seq_len is 0 or
// missing.
std::optional<Vocabulary> read_tokenizer_v2(FileReader& reader, const OpenSection& section);
std::optional<Vocabulary> read_tokenizer_v1(FileReader& reader, const OpenSection& section);

// Guesses the type of a token of version 1, which stores no types, by its text and the vocabulary's ids.
TokenType guess_type(const Vocabulary& vocabulary, std::string_view text, std::int32_t id);

// Returns the score that is written for a token. Throws unsupported for NaN, which readers reject.
float check_score(const Vocabulary& vocabulary, std::size_t id);

// Reads the fields of the tensors section into a model, and skips the data without reading it. Requires: the reader is
// past section_size. Leaves it past the last tensor.
void read_tensors_v2(FileReader& reader, const SourcePtr& source, Model& model);
void read_tensors_v1(FileReader& reader, const SourcePtr& source, Model& model);

// A tensor's role is its place in a model in the terms of ALT ("Per-Tensor Metadata" of the specification of version
// 2). The tensor's name decides it.
//
// ALT has roles only for Hugging Face's names in Mistral and Llama: "model.layers.3.self_attn.q_proj.weight".

// The values of these types are the codes of component_type, layer_type and projection_type in the file.
enum class ComponentType : std::int32_t { other = -1, layers = 0, embed_tokens = 1, lm_head = 2, norm = 3 };
enum class LayerPart : std::int32_t {
  other = -1,
  weight = 0,
  self_attn = 1,
  mlp = 2,
  input_layernorm = 3,
  post_attention_layernorm = 4
};
enum class ProjectionType : std::int32_t {
  other = -1,
  none = 0,
  q_proj = 1,
  k_proj = 2,
  v_proj = 3,
  o_proj = 4,
  gate_proj = 5,
  up_proj = 6,
  down_proj = 7
};

struct AltRole {
  ComponentType component = ComponentType::other;
  std::int32_t block = -1;  // layer number for ComponentType::layers, else -1
  LayerPart layer = LayerPart::other;
  ProjectionType projection = ProjectionType::other;

  bool is_known() const;  // true if ALT has numbers for the name
  friend bool operator==(const AltRole&, const AltRole&) = default;
};

// Returns the role of the tensor with that name. Parts of a name without a number in ALT are `other`.
AltRole find_alt_role(std::string_view name);

// Returns the tensors with known roles in canonical order, then the others in file order.
std::vector<const Tensor*> list_in_canonical_order(const Model& model);

// Hints are four numbers with which a file of ALT version 2 repeats information that a tensor's name has.

struct Hints {
  std::int32_t component_type = -1;
  // Is the number of the layer; outside layers, -1 for embed_tokens, -2 for lm_head, -3 for norm, and -4 and below for
  // other tensors.
  std::int32_t block_index = 0;
  std::int32_t layer_type = -1;
  std::int32_t projection_type = -1;
};

constexpr std::int32_t kFirstOtherBlock = -4;

// Returns the hints for a role. `other_block` is the block_index of a tensor outside the layers that has no number of
// its own.
Hints make_hints(const AltRole& role, std::int32_t other_block);

// Returns true for the tensors that `unique_count` counts.
bool is_outside_layers(const AltRole& role);

// Holds the numbers of layers, and of tensors outside layers. count_blocks() derives them from the tensors' names.
struct BlockCounts {
  std::int64_t blocks = 0;
  std::int64_t unique = 0;
  friend bool operator==(const BlockCounts&, const BlockCounts&) = default;
};
BlockCounts count_blocks(const Model& model);

}  // namespace poise::alt
