// Plans that families make of config.json, and invalid configurations that they refuse. The meaning of the keys is that
// of transformers' documentation. tests/runtime/independent_forward.py checks the numbers that plans compute.
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/check.hpp"
#include "family/config_effects.hpp"
#include "family/config_json.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns a small model of the family; `more` are further keys: R"("a": 1, )".
Model model_of(std::string_view model_type, std::string_view more = "") {
  const std::string json = fmt::format(
      R"({{{}"model_type": "{}", "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_key_value_heads": 2,
      "num_hidden_layers": 6, "head_dim": 16, "vocab_size": 40, "max_position_embeddings": 256}})",
      more, model_type);
  Model model;
  parse_config(model, *parse_json(json, "config.json").get_if<Attributes>(), "config.json");
  return model;
}

DecoderPlan plan_of(const Model& model) { return find_family_or_llama(model).plan(make_config_view(model)); }

std::string refusal(std::string_view model_type, std::string_view more) {
  try {
    const Model model = model_of(model_type, more);
    if (const auto faults = check_config(make_config_view(model), find_family_or_llama(model)); !faults.empty())
      return faults.front();
    plan_of(model);
  } catch (const Error& error) {
    return error.message();
  }
  return "nothing";
}

std::vector<std::size_t> windows(const DecoderPlan& plan) {
  std::vector<std::size_t> all;
  for (const LayerPlan& layer : plan.layers) all.push_back(layer.window);
  return all;
}

TEST(Plans, WindowsOfLayers) {
  EXPECT_THAT(windows(plan_of(model_of("mistral", R"("sliding_window": 8, )"))), ElementsAre(8, 8, 8, 8, 8, 8));
  EXPECT_THAT(windows(plan_of(model_of("qwen2", R"("sliding_window": 8, "max_window_layers": 4, )"))),
              ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(windows(plan_of(
                  model_of("qwen2", R"("use_sliding_window": true, "sliding_window": 8, "max_window_layers": 4, )"))),
              ElementsAre(0, 0, 0, 0, 8, 8));
  EXPECT_THAT(windows(plan_of(model_of("gemma2", R"("sliding_window": 8, )"))), ElementsAre(8, 0, 8, 0, 8, 0));
  EXPECT_THAT(windows(plan_of(model_of("gemma3_text", R"("sliding_window": 8, )"))), ElementsAre(8, 8, 8, 8, 8, 0));
  EXPECT_THAT(windows(plan_of(model_of("gemma3_text", R"("sliding_window": 8, "sliding_window_pattern": 3, )"))),
              ElementsAre(8, 8, 0, 8, 8, 0));
  constexpr const char* kTypes =
      R"("sliding_window": 8, "layer_types": ["full_attention", "full_attention", "sliding_attention", "full_attention",
                                    "full_attention", "full_attention"], )";
  EXPECT_THAT(windows(plan_of(model_of("gemma2", kTypes))), ElementsAre(0, 0, 8, 0, 0, 0));
}

TEST(Plans, LayersWithoutRotation) {
  const auto turning = [](std::string_view more) {
    std::string all;
    for (const LayerPlan& layer : plan_of(model_of("smollm3", more)).layers) all += layer.rope ? '1' : '0';
    return all;
  };
  EXPECT_EQ(turning(""), "111011");
  EXPECT_EQ(turning(R"("no_rope_layer_interval": 2, )"), "101010");
  EXPECT_EQ(turning(R"("no_rope_layers": [0, 1, 1, 0, 1, 1], )"), "011011");
}

TEST(Plans, ExpertsOfLayers) {
  constexpr const char* kExperts =
      R"("num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "decoder_sparse_step": 2, "mlp_only_layers": [3], )";
  std::string all;
  for (const LayerPlan& layer : plan_of(model_of("qwen3_moe", kExperts)).layers) all += layer.experts ? '1' : '0';
  EXPECT_EQ(all, "010001");
  const Model model = model_of("qwen3_moe", kExperts);
  const TensorTable& table = find_family_or_llama(model).tensors;
  EXPECT_EQ(table.list_layer(make_config_view(model), 0).size(), 8U + 3);
  EXPECT_EQ(table.list_layer(make_config_view(model), 1).size(), 8U + 1 + 3 * 8);
  EXPECT_TRUE(table.has("model.layers.1.mlp.experts.7.up_proj.weight", make_config_view(model)));
  EXPECT_FALSE(table.has("model.layers.1.mlp.experts.8.up_proj.weight", make_config_view(model)));
  EXPECT_FALSE(table.has("model.layers.1.mlp.experts.07.up_proj.weight", make_config_view(model)));
  EXPECT_FALSE(table.has("model.layers.0.mlp.experts.7.up_proj.weight", make_config_view(model)));
  EXPECT_FALSE(table.has("model.layers.1.mlp.up_proj.weight", make_config_view(model)));
}

// Python: 10000 ** (-2 * i / 16), 0.1 * math.log(4) + 1 and math.sqrt(1 + math.log(256 / 64) / math.log(64))
TEST(Plans, RotaryEmbeddings) {
  const auto rope = [](std::string_view model_type, std::string_view more) {
    return plan_of(model_of(model_type, more)).ropes.front();
  };
  const RopePlan usual = rope("llama", "");
  ASSERT_EQ(usual.frequencies.size(), 8U);
  EXPECT_FLOAT_EQ(usual.frequencies[3], 0.03162277660168379F);
  EXPECT_FLOAT_EQ(rope("llama", R"("rope_scaling": {"type": "linear", "factor": 4}, )").frequencies[3],
                  0.03162277660168379F / 4);
  EXPECT_EQ(rope("llama", R"("rope_scaling": {"type": "dynamic", "factor": 4}, )").frequencies, usual.frequencies);
  EXPECT_FLOAT_EQ(rope("llama", R"("rope_scaling": {"type": "yarn", "factor": 4}, )").factor, 1.1386294361119892F);
  const RopePlan partial = rope("phi3", R"("partial_rotary_factor": 0.5, )");
  EXPECT_EQ(partial.frequencies.size(), 4U);
  const RopePlan grown = rope(
      "phi3",
      R"("original_max_position_embeddings": 64, "rope_scaling": {"type": "su", "short_factor": [1, 1, 1, 1, 1, 1, 1, 1],
                                         "long_factor": [2, 2, 2, 2, 2, 2, 2, 2]}, )");
  EXPECT_EQ(grown.frequencies, usual.frequencies);
  EXPECT_FLOAT_EQ(grown.long_frequencies[3], 0.03162277660168379F / 2);
  EXPECT_EQ(grown.long_after, 64U);
  EXPECT_FLOAT_EQ(grown.factor, 1.1547005383792515F);
}

// standardize_rope_params() and Phi3Config of transformers 5: a value next to the object takes precedence over one
// inside, a factor over the ratio of positions, and the default of a Phi-3 is 4096 positions.
TEST(Plans, OriginalPositions) {
  const auto rope = [](std::string_view model_type, std::string_view beside, std::string_view inside) {
    return plan_of(model_of(model_type,
                            fmt::format(
                                R"({}"rope_scaling": {{"type": "longrope", {}"short_factor": [1, 1, 1, 1, 1, 1, 1, 1],
                                                    "long_factor": [2, 2, 2, 2, 2, 2, 2, 2]}}, )",
                                beside, inside)))
        .ropes.front();
  };
  const std::string_view is_64 = R"("original_max_position_embeddings": 64, )";
  const std::string_view is_16 = R"("original_max_position_embeddings": 16, )";
  EXPECT_EQ(rope("llama", is_64, is_16).long_after, 64U);
  EXPECT_EQ(rope("llama", "", is_16).long_after, 16U);
  EXPECT_EQ(rope("llama", "", "").long_after, 256U);
  EXPECT_EQ(rope("phi3", "", "").long_after, 4096U);
  EXPECT_FLOAT_EQ(rope("llama", is_64, "").factor, 1.1547005383792515F);
  EXPECT_FLOAT_EQ(rope("llama", is_64, R"("factor": 8, )").factor, 1.2247448713915889F);
}

TEST(Plans, InvalidConfigurationsAreRefused) {
  struct Case {
    std::string_view model_type;
    std::string_view more;
    std::string_view message;
  };
  const Case cases[] = {
      {"llama", R"("rope_scaling": {"type": "linear"}, )", "rope_scaling: factor is missing"},
      {"llama", R"("rope_scaling": {"type": "linear", "factor": 0}, )", "factor is 0, expected more than 0"},
      {"llama", R"("rope_scaling": {"type": "linear", "factor": 1e-40}, )", "frequencies are not finite numbers"},
      {"llama", R"("rope_scaling": {"type": "frob", "factor": 2}, )",
       "type is \"frob\", only default, linear, dynamic, llama3, yarn, longrope are supported"},
      {"llama", R"("rope_scaling": {"type": 7}, )", "type: expected text"},
      {"llama", R"("rope_scaling": [1], )", "rope_scaling: expected an object"},
      {"llama", R"("rope_parameters": {"full_attention": {"rope_type": "default"}}, )",
       "has an object for full_attention"},
      {"mistral", R"("rope_parameters": {"rope_type": "yarn", "factor": 4, "llama_4_scaling_beta": 0.1}, )",
       "has llama_4_scaling_beta, which is not supported"},
      {"llama", R"("rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}, )",
       "partial_rotary_factor is 0.5, only 1 is supported"},
      {"llama", R"("rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}, )",
       "high_freq_factor is 4, expected more than"},
      {"llama", R"("rope_scaling": {"factor": 4}, )", "rope_scaling has a factor but no type"},
      {"llama", R"("rope_scaling": {"type": "yarn", "factor": 8, "beta_fast": -1}, )", "beta_fast is -1"},
      {"llama", R"("rope_scaling": {"type": "yarn", "factor": 8, "original_max_position_embeddings": 0}, )",
       "original_max_position_embeddings is 0"},
      {"phi3", R"("rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1]}, )",
       "short_factor has 1 numbers, expected 8"},
      {"phi3", R"("rope_scaling": {"type": "longrope", "short_factor": [1, 1, 1, 1, 1, 1, 1, 0], "long_factor": []}, )",
       "short_factor is 0"},
      {"phi3", R"("rope_scaling": {"type": "longrope", "short_factor": ["a"], "long_factor": []}, )",
       "short_factor: expected a list of numbers"},
      {"phi3", R"("partial_rotary_factor": 0.2, )",
       "partial_rotary_factor 0.2 of head_dim 16 is 3: rotary embeddings need an even number"},
      {"phi3", R"("partial_rotary_factor": 1.5, )", "partial_rotary_factor is 1.5, expected more than 0 and at most 1"},
      {"mixtral", "", "num_local_experts is missing"},
      {"mixtral", R"("num_local_experts": 0, "num_experts_per_tok": 0, )",
       "num_local_experts is 0, expected 1 to 4096"},
      {"mixtral", R"("num_local_experts": 2147483647, "num_experts_per_tok": 2, )",
       "num_local_experts is 2147483647, expected 1 to 4096"},
      {"mixtral", R"("num_local_experts": 4, "num_experts_per_tok": 5, )", "num_experts_per_tok is 5, expected 1 to 4"},
      {"mixtral", R"("num_local_experts": "many", )", "num_local_experts: expected an integer"},
      {"qwen3_moe", R"("num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": -1, )",
       "moe_intermediate_size is -1"},
      {"qwen3_moe",
       R"("num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "decoder_sparse_step": 0, )",
       "decoder_sparse_step is 0"},
      {"qwen3_moe",
       R"("num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "mlp_only_layers": [0, 0, 0, 0, 0, 0, 0], )",
       "mlp_only_layers has 7 layers"},
      {"gemma2", R"("layer_types": ["full_attention"], )", "layer_types has 1 layers, num_hidden_layers is 6"},
      {"gemma2", R"("layer_types": ["a", "b", "c", "d", "e", "f"], )", "layer 0 is \"a\""},
      {"gemma2", R"("sliding_window": null, )", "sliding_window is missing"},
      {"gemma2", R"("query_pre_attn_scalar": 0, )", "query_pre_attn_scalar is 0, expected more than 0"},
      {"gemma2", R"("attn_logit_softcapping": -1, )", "attn_logit_softcapping is -1"},
      {"gemma", R"("hidden_activation": "frob", )", "the activation \"frob\" is not supported"},
      {"gemma3_text", R"("rope_local_base_freq": 0, )", "rope_local_base_freq is 0"},
      {"smollm3", R"("no_rope_layers": [1], )", "no_rope_layers has 1 layers, num_hidden_layers is 6"},
      {"smollm3", R"("no_rope_layer_interval": 0, )", "no_rope_layer_interval is 0"},
      {"gemma3_text", R"("sliding_window_pattern": 0, )", "sliding_window_pattern is 0, expected 1 or more"},
      {"gemma3_text", R"("sliding_window_pattern": -2, )", "sliding_window_pattern is -2, expected 1 or more"},
      {"gpt_oss", R"("num_local_experts": 4, "num_experts_per_tok": 2, )", "rope_scaling is missing"},
      {"gpt_oss", R"("num_local_experts": 4, "num_experts_per_tok": 2, "swiglu_limit": 6, )",
       "swiglu_limit is 6, only 7 is supported"},
      {"gpt2", R"("n_embd": 65, )", "a GPT-2 has equal numbers of heads"},
  };
  for (const Case& test_case : cases)
    EXPECT_THAT(refusal(test_case.model_type, test_case.more), HasSubstr(std::string(test_case.message)))
        << test_case.model_type << " " << test_case.more;
}

// The rule is that of GemmaMLP and Gemma2MLP of transformers.
TEST(Plans, GeluOfGemmaIsByTanhInTheFirstFilesAlone) {
  const auto activation = [](std::string_view type, const std::string& more) {
    return plan_of(model_of(type, more)).activation;
  };
  for (const char* type : {"gemma", "gemma2", "gemma3_text"}) {
    EXPECT_EQ(activation(type, ""), ActivationKind::gelu_tanh) << type;
    EXPECT_EQ(activation(type, R"("hidden_act": "gelu", )"), ActivationKind::gelu_tanh) << type;
    EXPECT_EQ(activation(type, R"("hidden_act": "gelu", "hidden_activation": null, )"), ActivationKind::gelu_tanh)
        << type;
    EXPECT_EQ(activation(type, R"("hidden_activation": "gelu", )"), ActivationKind::gelu) << type;
    EXPECT_EQ(activation(type, R"("hidden_activation": "gelu_pytorch_tanh", )"), ActivationKind::gelu_tanh) << type;
  }
}

TEST(Plans, ConfigurationsOfManyKeysAreRefused) {
  std::string more;
  for (int i = 0; i < 1001; ++i) more += fmt::format("\"key{}\": 0, ", i);
  EXPECT_THAT(refusal("llama", more), HasSubstr("keys, at most 1000 are allowed"));
}

TEST(Plans, MultimodalDirectoriesAreReadFromTextConfig) {
  Model model;
  parse_config(
      model,
      *parse_json(
           R"({"model_type": "gemma3", "vision_config": {"hidden_size": 9}, "text_config": {"hidden_size": 64, "num_hidden_layers": 2, "sliding_window": 8}})",
           "config.json")
           .get_if<Attributes>(),
      "config.json");
  ASSERT_TRUE(model.config);
  EXPECT_EQ(model.config->hidden_size, 64);
  EXPECT_EQ(model.config->head_dim, 256);
  EXPECT_EQ(plan_of(model).layers.size(), 2U);
  for (const char* name :
       {"language_model.model.layers.1.mlp.up_proj.weight", "model.language_model.layers.1.mlp.up_proj.weight"}) {
    EXPECT_EQ(find_table_name(find_family_or_llama(model), name), "model.layers.1.mlp.up_proj.weight") << name;
  }
  EXPECT_EQ(find_table_name(find_family_or_llama(model), "vision_tower.layers.1.weight"),
            "vision_tower.layers.1.weight");
  EXPECT_THAT(list_ignored_effects(model), IsEmpty());
  model.config_json.set("quantization_config", "any");
  EXPECT_THAT(list_ignored_effects(model), ElementsAre(HasSubstr("quantization_config")))
      << "a key next to text_config is used, too";
  EXPECT_TRUE(has_other_tensors(model));
}

TEST(Plans, TextModelsOfAnotherTypeAreReported) {
  for (const auto& [type, own, other] :
       {std::tuple("gemma3", "gemma3_text", "gemma3n_text"), std::tuple("mistral3", "mistral", "ministral3")}) {
    for (const char* text : {own, other}) {
      Model model;
      parse_config(
          model,
          *parse_json(
               fmt::format(
                   R"({{"model_type": "{}", "text_config": {{"model_type": "{}", "hidden_size": 64, "num_attention_heads": 4,
                                          "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 40}}}})",
                   type, text),
               "config.json")
               .get_if<Attributes>(),
          "config.json");
      EXPECT_EQ(list_ignored_effects(model).empty(), text == own) << text;
      EXPECT_EQ(has_other_tensors(model), text == other) << text;
      if (text == other) {
        EXPECT_THAT(
            list_ignored_effects(model),
            ElementsAre(fmt::format("text_config's model_type is \"{}\", only \"{}\" is supported", other, own)));
      }
    }
  }
}

TEST(Plans, SwitchesOfLayers) {
  const auto turns = [](std::string_view list) {
    std::vector<bool> all;
    for (const LayerPlan& layer : plan_of(model_of("smollm3", fmt::format("\"no_rope_layers\": {}, ", list))).layers)
      all.push_back(layer.rope.has_value());
    return all;
  };
  EXPECT_THAT(turns("[true, false, true, true, false, true]"), ElementsAre(true, false, true, true, false, true));
  const Model qwens =
      model_of("llama", R"("use_sliding_window": false, "sliding_window": 8, "max_window_layers": 4, )");
  EXPECT_THAT(windows(plan_of(qwens)), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(list_ignored_effects(qwens), IsEmpty());
}

}  // namespace
}  // namespace poise
