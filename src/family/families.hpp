// Lists the families that Poise knows, and finds the family of a model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "family/family.hpp"

namespace poise {

std::span<const Family* const> list_families();

// Returns the family of that model_type, or nullptr.
const Family* find_family(std::string_view model_type);

// Returns the family, or Llama for an unknown type, because most families share Llama's names and keys.
const Family& find_family_or_llama(std::string_view model_type);
inline const Family& find_family_or_llama(const Model& model) { return find_family_or_llama(model.card.model_type); }

// Returns the model's configuration as its family reads it. Requires: the model has one.
ConfigView make_config_view(const Model& model);
// Returns the object of config.json that has the family's keys: Family::nested, or all of config.json.
const Attributes& find_family_keys(const Family& family, const Attributes& config_json);

// Returns the tensor of a name in the family's table, in any of its spellings; nullptr if missing.
const Tensor* find_weight(const Model& model, const Family& family, std::string_view name);
// Returns the table's spelling of a tensor's name; the name itself if it is not in the table.
std::string find_table_name(const Family& family, std::string_view name);

// Returns how the model stores its experts: separate if its family has only one way.
ExpertsStored find_experts_stored(const Model& model, const Family& family);
// Returns the result of Family::convert_weights(); std::nullopt if the model stays as it is.
std::optional<ConvertedWeights> convert_weights(const Model& model, WeightReader reader, bool numbers);

// Returns the model_type of every family, for messages: "mistral, llama and tiny_llama".
std::string format_family_names();

// These are the rows of the table in families.cpp. Each family's file has its own namespace, so that two files may use
// the same names.

namespace gemma {
extern const Family kGemmaFamily;
extern const Family kGemma2Family;
extern const Family kGemma3TextFamily;
extern const Family kGemma3Family;
}  // namespace gemma
namespace gpt2 {
extern const Family kGpt2Family;
}  // namespace gpt2
namespace gpt_oss {
extern const Family kGptOssFamily;
}  // namespace gpt_oss

// Mistral and Llama differ only in defaults and biases, and in use_sliding_window, which Llama reads.
namespace llama {
extern const Family kMistralFamily;
extern const Family kMistral3Family;  // Mistral as the text model of a multimodal directory
extern const Family kLlamaFamily;     // 1, 2 and 3
}  // namespace llama
namespace mixtral {
extern const Family kMixtralFamily;
}  // namespace mixtral
namespace olmo2 {
extern const Family kOlmo2Family;
}  // namespace olmo2

// This is the family of Phi-3, Phi-3.5 and Phi-4.
namespace phi3 {
extern const Family kPhi3Family;
}  // namespace phi3
namespace qwen {
extern const Family kQwen2Family;  // and Qwen2.5
extern const Family kQwen3Family;
extern const Family kQwen3MoeFamily;
}  // namespace qwen
namespace smollm3 {
extern const Family kSmolLm3Family;
}  // namespace smollm3

// Tiny Llama (docs/formats/tiny-llama.md) has these weights:
//
//   embedding.weight [V, D]   position_embedding.weight [S, D]
//   a layer: attention.{query,key,value,output}.weight [D, D]   ffn.linear1.weight [D, F], .bias [F]
//            ffn.linear2.weight [F, D], .bias [D]   norm1, norm2: .weight, .bias [D]
//   output_projection.weight [D, V]
//
// Matrices are [in, out]: y = x W.
namespace tiny_llama {
extern const Family kTinyLlamaFamily;
}  // namespace tiny_llama

inline constexpr std::string_view kTinyLlama = "tiny_llama";  // Card::model_type
inline constexpr float kTinyLlamaNormEps = 1e-5F;

struct TinyLlamaSizes {
  std::int64_t model_dim = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t ffn_hidden_dim = 0;
  std::int64_t positions = 0;
  std::int64_t vocabulary = 0;
  float dropout = 0;
};
// Returns the hyperparameters of a Tiny Llama with these sizes.
Config make_tiny_llama_config(const TinyLlamaSizes& sizes);

}  // namespace poise
