// Describes Llama (1, 2, 3, 3.1 to 3.3) and Mistral. Keys and defaults are those of LlamaConfig and MistralConfig of
// transformers (docs/formats/huggingface.md). Matrices are [out, in]: y = W x.
#include "family/families.hpp"

#include <array>

#include "family/decoder_family.hpp"

namespace poise::llama {
namespace {

constexpr std::array kMistralLayer = join_tables(kInputNorm, kAttentionRows, kPostAttentionNorm, kMlpRows);

// Reads Llama's configuration. Some Qwen models are saved as Llama and keep Qwen's use_sliding_window.
Config read_llama_config(const ConfigKeys& keys) {
  Config config = read_decoder_config(keys, {.max_position_embeddings = 2048, .rms_norm_eps = 1e-6F});
  if (!keys.read_boolean("use_sliding_window").value_or(true)) config.sliding_window = 0;
  return config;
}
Config read_mistral_config(const ConfigKeys& keys) {
  return read_decoder_config(keys, {.max_position_embeddings = 32768, .sliding_window = 4096, .rms_norm_eps = 1e-5F});
}

DecoderPlan plan(const ConfigView& view) { return make_decoder_plan(view); }

constexpr std::array kFollowedByLlama = list_followed_keys({"attention_bias", "mlp_bias"});

}  // namespace

constexpr Family kLlamaFamily =
    make_decoder_family("llama", "LlamaForCausalLM", "Mistral or Llama", kLlamaLayer,
                        {.read_config = read_llama_config, .plan = plan, .followed = kFollowedByLlama});

constexpr Family kMistralFamily =
    make_decoder_family("mistral", "MistralForCausalLM", "Mistral or Llama", kMistralLayer,
                        {.read_config = read_mistral_config, .plan = plan, .followed = kRopeObjects});

constexpr Family kMistral3Family =
    make_decoder_family("mistral3", "Mistral3ForConditionalGeneration", "Mistral or Llama", kMistralLayer,
                        {.read_config = read_mistral_config,
                         .nested = kTextConfig,
                         .text_type = "mistral",
                         .plan = plan,
                         .followed = kRopeObjects});

}  // namespace poise::llama
