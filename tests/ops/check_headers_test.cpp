// The findings of verify() about a model's headers: what run refuses as invalid is an error of verify, too.
#include "ops/check_headers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "family/config_json.hpp"

namespace poise {
namespace {

using testing::IsEmpty;

struct Case {
  const char* model_type;
  const char* keys;
  const char* message;
};

std::vector<Finding> findings(const Case& tested) {
  Model model;
  model.card.model_type = tested.model_type;
  const std::string json =
      R"({"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 4, "max_position_embeddings": 64, )"
      R"("num_key_value_heads": 2, "head_dim": 4, )" +
      std::string(tested.keys) + "}";
  parse_config(model, parse_json(json, "config.json").take<Attributes>(), "config.json");
  return check_headers(model, "m.zt");
}

// Only the family's plan reads these keys.
TEST(CheckHeaders, AConfigurationThatHasNoPlanIsAFault) {
  for (const Case& tested : {
           Case{"gemma2", R"("query_pre_attn_scalar": -3)", "query_pre_attn_scalar is -3, expected more than 0"},
           Case{"gemma2", R"("attn_logit_softcapping": -1.5)", "attn_logit_softcapping is -1.5, expected more than 0"},
           Case{"gemma2", R"("sliding_window": null)",
                "layers attend to a sliding window, but sliding_window is missing"},
           Case{"gemma3_text", R"("rope_local_base_freq": 0)", "rope_local_base_freq is 0, expected more than 0"},
           Case{"smollm3", R"("no_rope_layer_interval": 0)", "no_rope_layer_interval is 0, expected 1 or more"},
           Case{"qwen2", R"("layer_types": ["full_attention"])", "layer_types has 1 layers, num_hidden_layers is 2"},
           Case{"llama", R"("rope_scaling": {"rope_type": "linear"})", "rope_scaling: factor is missing"},
           Case{"phi3", R"("partial_rotary_factor": 2)",
                "partial_rotary_factor is 2, expected more than 0 and at most 1"},
       }) {
    SCOPED_TRACE(tested.keys);
    const auto found = findings(tested);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front().severity, Severity::error);
    EXPECT_EQ(found.front().message, tested.message);
    EXPECT_EQ(found.front().path, "m.zt");
  }
}

// The file is sound.
TEST(CheckHeaders, KeysThatPoiseDoesNotFollowAreWarnings) {
  const auto found = findings({"llama", R"("rope_scaling": {"rope_type": "spiral"})", ""});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().severity, Severity::warning);
  EXPECT_EQ(
      found.front().message,
      "Poise cannot run the model: rope_scaling's type is \"spiral\", only default, linear, dynamic, llama3, yarn, "
      "longrope are supported");
}

// Each of these is the error with which run refuses the model.
TEST(CheckHeaders, WhatRunRefusesIsReported) {
  for (const auto& [keys, message] : {
           std::pair(R"("logit_scale": 2, "rope_scaling": {"rope_type": "linear"})",
                     "logit_scale is 2, only 1 is supported"),
           {R"("quantization_config": {"quant_method": "vptq"})",
            "quantization_config is {\"quant_method\":\"vptq\"}, only null is supported"},
       }) {
    const auto found = findings({"llama", keys, ""});
    ASSERT_EQ(found.size(), 1U) << keys;
    EXPECT_EQ(found.front().severity, Severity::warning);
    EXPECT_EQ(found.front().message, std::string("Poise cannot run the model: ") + message);
  }
}

TEST(CheckHeaders, SoundAndUnknownModelsHaveNoFindings) {
  EXPECT_THAT(findings({"gemma2", R"("query_pre_attn_scalar": 4)", ""}), IsEmpty());
  EXPECT_THAT(findings({"unheard_of", R"("rope_scaling": {"rope_type": "linear"})", ""}), IsEmpty());
  EXPECT_THAT(check_headers(Model(), "m.zt"), IsEmpty());
}

}  // namespace
}  // namespace poise
