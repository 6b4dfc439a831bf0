// Defaults are those of the families' own configurations in transformers: MistralConfig and LlamaConfig.
#include "family/config_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

namespace poise {
namespace {

using testing::HasSubstr;

Attributes json(std::string_view text) {
  const Value value = parse_json(text, "config.json");
  return *value.get_if<Attributes>();
}

Config config_of(std::string_view text, std::string* type = nullptr) {
  std::string model_type;
  Config config = read_config_attributes(json(text), model_type, "config.json");
  if (type != nullptr) *type = model_type;
  return config;
}

std::string error_of(std::string_view text, ErrorKind kind) {
  try {
    std::string model_type;
    read_config_attributes(json(text), model_type, "config.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error: " << text;
  return {};
}

// Returns the config.json of a minimal model, with more keys in front.
std::string with(std::string_view more) {
  return "{" + std::string(more) +
         R"("hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2})";
}

TEST(ConfigJson, MistralsDefaults) {
  std::string type;
  const Config config = config_of(with(R"("model_type": "mistral", )"), &type);
  EXPECT_EQ(type, "mistral");
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.num_key_value_heads, 4);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.sliding_window, 4096);
  EXPECT_EQ(config.max_position_embeddings, 32768);
  EXPECT_EQ(config.rope_theta, 10000.0F);
  EXPECT_EQ(config.rms_norm_eps, 1e-5F);
  EXPECT_EQ(config.hidden_act, "silu");
  EXPECT_FALSE(config.tie_word_embeddings);
}

TEST(ConfigJson, LlamasDefaults) {
  const Config config = config_of(with(R"("model_type": "llama", )"));
  EXPECT_EQ(config.rms_norm_eps, 1e-6F);
  EXPECT_EQ(config.sliding_window, 0);
  EXPECT_EQ(config.max_position_embeddings, 2048);
}

TEST(ConfigJson, StatedValuesReplaceDefaults) {
  const Config config = config_of(with(
      R"("model_type": "mistral", "num_key_value_heads": 2, "head_dim": 24, "sliding_window": 128, "rope_theta": 1e6,
                                          "rms_norm_eps": 2e-5, "vocab_size": 960.0, "tie_word_embeddings": true, )"));
  EXPECT_EQ(config.num_key_value_heads, 2);
  EXPECT_EQ(config.head_dim, 24);
  EXPECT_EQ(config.sliding_window, 128);
  EXPECT_EQ(config.rope_theta, 1e6F);
  EXPECT_EQ(config.rms_norm_eps, 2e-5F);
  EXPECT_EQ(config.vocab_size, 960);
  EXPECT_TRUE(config.tie_word_embeddings);
}

// An absent key has the family's default; null means no window.
TEST(ConfigJson, ANullWindowMeansNoWindow) {
  EXPECT_EQ(config_of(with(R"("model_type": "mistral", "sliding_window": null, )")).sliding_window, 0);
}

TEST(ConfigJson, AKnownTypeStaysWhereTheFileHasNone) {
  std::string type = "llama";
  read_config_attributes(json(with("")), type, "config.json");
  EXPECT_EQ(type, "llama");
}

TEST(ConfigJson, RopeThetaInAnObjectOfItsOwn) {
  EXPECT_EQ(
      config_of(with(R"("model_type": "llama", "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}, )"))
          .rope_theta,
      5e5F);
  // The configuration is read, even if the model cannot be run.
  EXPECT_EQ(
      config_of(with(R"("model_type": "llama", "rope_scaling": {"type": "no such scaling", "rope_theta": 2.0}, )"))
          .rope_theta,
      2.0F);
}

TEST(ConfigJson, AWrongTypeOrAMissingKeyIsNamed) {
  EXPECT_THAT(error_of(R"({"model_type": "llama"})", ErrorKind::invalid_file),
              HasSubstr("config.json: config: hidden_size: missing"));
  EXPECT_THAT(error_of(with(R"("model_type": "llama", "vocab_size": "960", )"), ErrorKind::invalid_file),
              HasSubstr("vocab_size: expected an integer"));
  EXPECT_THAT(error_of(with(R"("model_type": "llama", "vocab_size": 9.5, )"), ErrorKind::invalid_file),
              HasSubstr("vocab_size: expected an integer"));
  EXPECT_THAT(error_of(with(R"("model_type": "llama", "vocab_size": 4294967296, )"), ErrorKind::invalid_file),
              HasSubstr("vocab_size: expected an integer"));
  EXPECT_THAT(error_of(with(R"("model_type": "llama", "rms_norm_eps": true, )"), ErrorKind::invalid_file),
              HasSubstr("rms_norm_eps: expected a number"));
  EXPECT_THAT(error_of(with(R"("model_type": "llama", "rms_norm_eps": 1e39, )"), ErrorKind::invalid_file),
              HasSubstr("rms_norm_eps: 1e+39"));
  EXPECT_THAT(error_of(with(R"("model_type": "llama", "tie_word_embeddings": 1, )"), ErrorKind::invalid_file),
              HasSubstr("tie_word_embeddings: expected true"));
}

}  // namespace
}  // namespace poise
