// The meaning of the keys: Hugging Face's documentation of the configurations of Llama, Mistral, Gemma 2, Granite,
// Cohere and Qwen2.
#include "family/config_effects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "family/config_json.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Model model_with(const std::string& key, const std::string& json, std::int64_t window = 0) {
  Attributes map{{"model_type", "mistral"}, {"hidden_size", 8},
                 {"intermediate_size", 4},  {"num_attention_heads", 2},
                 {"num_hidden_layers", 2},  {"sliding_window", window > 0 ? Value(window) : Value()}};
  map.set(key, parse_json(json, "test"));
  Model model;
  parse_config(model, std::move(map), "test");
  return model;
}

TEST(ConfigEffects, AreReportedByNameAndValue) {
  EXPECT_THAT(list_ignored_effects(model_with("partial_rotary_factor", "0.5")),
              ElementsAre("partial_rotary_factor is 0.5, only 1 is supported"));
  EXPECT_THAT(list_ignored_effects(model_with("attention_bias", "true")),
              ElementsAre("attention_bias is true, only false is supported"));
  EXPECT_THAT(list_ignored_effects(model_with("hidden_act", "\"gelu\"")),
              ElementsAre("hidden_act is \"gelu\", only \"silu\" is supported"));
  EXPECT_THAT(list_ignored_effects(model_with("quantization_config", R"({"bits":4})")),
              ElementsAre("quantization_config is {\"bits\":4}, only null is supported"));
}

TEST(ConfigEffects, ChangeTheComputation) {
  const std::pair<const char*, const char*> cases[] = {
      {"mlp_bias", "true"},
      {"mlp_bias", "1"},
      {"layer_types", R"(["full_attention","sliding_attention"])"},
      {"layer_types", R"(["sliding_attention","sliding_attention"])"},
      {"layer_types", R"("full_attention")"},
      {"logit_scale", "0.0625"},
      {"attn_logit_softcapping", "50.0"},
      {"query_pre_attn_scalar", "256"},
      {"num_local_experts", "8"},
      {"clip_qkv", "8"},
      {"quantization", R"({"group_size": 64, "bits": 4})"},
  };
  for (const auto& [key, json] : cases)
    EXPECT_EQ(list_ignored_effects(model_with(key, json)).size(), 1U) << key << " " << json;
}

// Mistral follows these keys; a format without them would lose them.
TEST(ConfigEffects, KeysOfPositionsAreFollowedAndCannotBeLost) {
  const std::pair<const char*, const char*> cases[] = {
      {"rope_scaling", R"({"type":"linear","factor":2})"},
      {"rope_scaling", R"({"rope_type":"llama3","factor":8})"},
      {"rope_parameters", R"({"rope_type":"default","rope_theta":1e4,"partial_rotary_factor":0.25})"},
      {"rope_parameters", R"({"full_attention":{"rope_type":"default"}})"},
      {"rope_parameters", R"({"rope_type":7})"},
  };
  for (const auto& [key, json] : cases) {
    EXPECT_EQ(list_effects_outside_config(model_with(key, json)).size(), 1U) << key << " " << json;
    EXPECT_THAT(list_ignored_effects(model_with(key, json)), IsEmpty()) << key << " " << json;
  }
}

TEST(ConfigEffects, ValuesThatChangeNothingAreFine) {
  const std::pair<const char*, const char*> cases[] = {
      {"partial_rotary_factor", "1"},
      {"partial_rotary_factor", "1.0"},
      {"partial_rotary_factor", "null"},
      {"quantization_config", "null"},
      {"rope_scaling", "null"},
      {"rope_scaling", R"({"type":"default"})"},
      {"rope_parameters", R"({"rope_type":"default","rope_theta":1e4,"partial_rotary_factor":1.0})"},
      {"attention_bias", "false"},
      {"layer_types", R"(["full_attention","full_attention"])"},
      {"logit_scale", "1"},
      {"query_pre_attn_scalar", "4"},
      {"hidden_act", "\"swish\""},
      {"use_sliding_window", "false"},
      {"frobnication", "true"},
  };
  for (const auto& [key, json] : cases)
    EXPECT_THAT(list_ignored_effects(model_with(key, json)), IsEmpty()) << key << " " << json;
}

TEST(ConfigEffects, KeysOfLayersMustAgreeWithTheWindow) {
  EXPECT_THAT(list_ignored_effects(model_with("layer_types", R"(["sliding_attention","sliding_attention"])", 16)),
              IsEmpty());
  EXPECT_EQ(list_ignored_effects(model_with("layer_types", R"(["full_attention","full_attention"])", 16)).size(), 1U);
  EXPECT_EQ(list_ignored_effects(model_with("use_sliding_window", "false", 16)).size(), 1U);
  EXPECT_THAT(list_ignored_effects(model_with("use_sliding_window", "true", 16)), IsEmpty());
}

TEST(ConfigEffects, KeysInConfigReachEveryFormat) {
  const Model model = model_with("hidden_act", "\"gelu\"");
  EXPECT_THAT(list_effects_outside_config(model), IsEmpty());
  EXPECT_EQ(list_effects_outside_config(model_with("mlp_bias", "true")).size(), 1U);
  EXPECT_FALSE(has_other_tensors(model_with("mlp_bias", "true")));
  EXPECT_TRUE(has_other_tensors(model_with("quantization_config", "{}")));
}

// Gemma 2 has soft caps by default, and a scale of attention of its own; Qwen2 has windows only in layers from
// max_window_layers on.
TEST(ConfigEffects, HarmlessValuesCannotBeLostWhereTheDefaultDiffers) {
  Attributes map{{"model_type", "gemma2"},
                 {"hidden_size", 8},
                 {"intermediate_size", 4},
                 {"num_attention_heads", 2},
                 {"num_hidden_layers", 2},
                 {"num_key_value_heads", 1},
                 {"head_dim", 4},
                 {"vocab_size", 8},
                 {"query_pre_attn_scalar", 4},
                 {"attn_logit_softcapping", {}}};
  Model model;
  parse_config(model, map, "test");
  EXPECT_THAT(
      list_effects_outside_config(model),
      ElementsAre("query_pre_attn_scalar is 4, and a Gemma 2 model without this key computes something else",
                  "attn_logit_softcapping is null, and a Gemma 2 model without this key computes something else"));
  EXPECT_THAT(list_ignored_effects(model), IsEmpty());
  map = {{"model_type", "qwen2"},  {"hidden_size", 8},    {"intermediate_size", 4},     {"num_attention_heads", 2},
         {"num_hidden_layers", 1}, {"sliding_window", 4}, {"use_sliding_window", true}, {"frobnication", true}};
  parse_config(model, map, "test");
  EXPECT_THAT(list_effects_outside_config(model), IsEmpty());
  map.set("layer_types", Value::Array{"sliding_attention"});
  parse_config(model, map, "test");
  EXPECT_THAT(list_effects_outside_config(model),
              ElementsAre("layer_types is [\"sliding_attention\"], and a Qwen2 model without this key computes "
                          "something else"));
}

// transformers writes rope_parameters for plain rotations, too.
TEST(ConfigEffects, PlainRotationsNeedNoKeys) {
  EXPECT_THAT(
      list_effects_outside_config(model_with("rope_parameters", R"({"rope_type":"default","rope_theta":5000})")),
      IsEmpty());
  EXPECT_THAT(list_effects_outside_config(model_with("rope_scaling", R"({"type":"default"})")), IsEmpty());
}

TEST(ConfigEffects, LongValuesAreCut) {
  const auto effects =
      list_ignored_effects(model_with("quantization_config", fmt::format(R"({{"a":"{}"}})", std::string(1000, 'x'))));
  ASSERT_EQ(effects.size(), 1U);
  EXPECT_LT(effects[0].size(), 150U);
}

}  // namespace
}  // namespace poise
