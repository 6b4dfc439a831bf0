// The keys are those of transformers' GenerationConfig and of llama.cpp's gguf-py/gguf/constants.py
// (general.sampling.*); the values that absent ones have are GenerationConfig's: temperature 1, top_k 50, do_sample
// false.
#include <poise/sampling_defaults.hpp>

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace poise {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

SamplingDefaults of_generation_config(const char* json) {
  Model model;
  model.attributes.set("generation_config", parse_json(json, "generation_config.json"));
  return read_sampling_defaults(model);
}

TEST(SamplingDefaults, ComeFromGenerationConfig) {
  const SamplingDefaults found = of_generation_config(
      R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.1})");
  EXPECT_EQ(found.source, "generation_config.json");
  EXPECT_EQ(found.temperature, 0.6F);
  EXPECT_EQ(found.top_k, 20);
  EXPECT_EQ(found.top_p, 0.95F);
  EXPECT_EQ(found.min_p, 0.05F);
  EXPECT_EQ(found.repetition_penalty, 1.1F);
  EXPECT_THAT(found.ignored, IsEmpty());
}

TEST(SamplingDefaults, HaveTheUsualValuesWhereDoSampleStandsAlone) {
  const SamplingDefaults found = of_generation_config(R"({"do_sample": true, "top_p": null})");
  EXPECT_EQ(found.source, "generation_config.json");
  EXPECT_EQ(found.temperature, 1.0F);
  EXPECT_EQ(found.top_k, 50);
  EXPECT_EQ(found.top_p, std::nullopt);
}

TEST(SamplingDefaults, ChooseTheBestTokenWithoutDoSample) {
  for (const char* json : {R"({"temperature": 0.6, "top_k": 20, "top_p": 0.9, "repetition_penalty": 1.1})",
                           R"({"do_sample": false, "temperature": 0.6, "repetition_penalty": 1.1})"}) {
    const SamplingDefaults found = of_generation_config(json);
    EXPECT_EQ(found.temperature, std::nullopt) << json;
    EXPECT_EQ(found.top_k, std::nullopt) << json;
    EXPECT_EQ(found.top_p, std::nullopt) << json;
    EXPECT_EQ(found.repetition_penalty, 1.1F) << json;
  }
  EXPECT_EQ(of_generation_config(R"({"eos_token_id": 2})").source, "");
}

TEST(SamplingDefaults, NameWhatTheSamplerLacksOrRefuses) {
  const SamplingDefaults found = of_generation_config(
      R"({"do_sample": true, "temperature": -1, "top_k": 1.5, "top_p": "high", "typical_p": 0.9, "num_beams": 1})");
  EXPECT_EQ(found.temperature, 1.0F);
  EXPECT_EQ(found.top_k, 50);
  EXPECT_EQ(found.top_p, std::nullopt);
  EXPECT_THAT(found.ignored, IsEmpty());
  EXPECT_THAT(found.ignored_when_sampling,
              ElementsAre("temperature -1", "top_k 1.5", "top_p \"high\"", "typical_p 0.9"));
}

// These count without sampling, too.
TEST(SamplingDefaults, NameMethodsThatPoiseLacks) {
  for (const char* json : {R"({"num_beams": 4, "typical_p": 0.5})", R"({"no_repeat_ngram_size": 3})",
                           R"({"suppress_tokens": [1, 2]})", R"({"bad_words_ids": [[1]]})", R"({"min_new_tokens": 2})",
                           R"({"stop_strings": ["a"]})", R"({"repetition_penalty": -1})"}) {
    const SamplingDefaults found = of_generation_config(json);
    EXPECT_EQ(found.source, "generation_config.json") << json;
    EXPECT_EQ(found.ignored.size(), 1U) << json;
  }
  EXPECT_THAT(of_generation_config(R"({"suppress_tokens": [1, 2]})").ignored, ElementsAre("suppress_tokens [1,2]"));
  const SamplingDefaults off = of_generation_config(
      R"({"num_beams": 1, "suppress_tokens": [], "bad_words_ids": null, "token_healing": false, "min_length": 0,
          "sequence_bias": {}, "guidance_scale": 1.0, "typical_p": 1.0})");
  EXPECT_EQ(off.source, "");
  EXPECT_THAT(off.ignored, IsEmpty());
  EXPECT_THAT(off.ignored_when_sampling, IsEmpty());
}

TEST(SamplingDefaults, ComeFromKeysOfGguf) {
  Model model;
  model.attributes.set("general.sampling.top_k", std::int64_t{64});
  model.attributes.set("general.sampling.top_p", 0.95);
  model.attributes.set("general.sampling.penalty_repeat", 1.05);
  model.attributes.set("general.sampling.mirostat", std::int64_t{2});
  model.attributes.set("general.sampling.xtc_probability", 0.0);
  SamplingDefaults found = read_sampling_defaults(model);
  EXPECT_EQ(found.source, "general.sampling.*");
  EXPECT_EQ(found.temperature, 1.0F);  // top_k would change nothing at 0
  EXPECT_EQ(found.top_k, 64);
  EXPECT_EQ(found.top_p, 0.95F);
  EXPECT_EQ(found.repetition_penalty, 1.05F);
  EXPECT_THAT(found.ignored_when_sampling, ElementsAre("general.sampling.mirostat 2"));
  model.attributes.set("general.sampling.temp", 0.7);
  EXPECT_EQ(read_sampling_defaults(model).temperature, 0.7F);
  // A directory that was converted keeps its own file.
  model.attributes.set("generation_config", Attributes{{"do_sample", true}, {"temperature", 0.2}});
  EXPECT_EQ(read_sampling_defaults(model).temperature, 0.2F);
}

TEST(SamplingDefaults, TakeNoNumberThatIsNotFiniteOrTooLarge) {
  Model model;
  model.attributes.set("general.sampling.temp", std::numeric_limits<double>::infinity());
  model.attributes.set("general.sampling.top_k", 1e300);
  model.attributes.set("general.sampling.top_p", std::numeric_limits<double>::quiet_NaN());
  const SamplingDefaults found = read_sampling_defaults(model);
  EXPECT_EQ(found.temperature, std::nullopt);
  EXPECT_EQ(found.top_k, std::nullopt);
  EXPECT_EQ(found.top_p, std::nullopt);
  EXPECT_EQ(found.ignored_when_sampling.size(), 3U);
}

}  // namespace
}  // namespace poise
