// Checks which keys of config.json a model keeps, and which its files hold.
#include "family/config_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "formats/metadata.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Attributes parse(const std::string& json) { return parse_json(json, "test").take<Attributes>(); }

Model model_of(const std::string& json) {
  Model model;
  parse_config(model, parse(json), "config.json");
  return model;
}

// Keys in Config are spelled as in config.json: 1e4 is an integer, and null stays null.
constexpr const char* kMistral =
    R"({"architectures":["MistralForCausalLM"],"hidden_size":8,"frobnication":{"b":1,"a":[2.5,null]},"intermediate_size":4,"model_type":"mistral",)"
    R"("num_attention_heads":2,"num_hidden_layers":1,"rope_theta":10000,"sliding_window":null,"head_dim":null})";

// The keys of kMistral, and then the family's defaults, in the order of the hyperparameters.
constexpr const char* kWhole =
    R"({"architectures":["MistralForCausalLM"],"hidden_size":8,"frobnication":{"b":1,"a":[2.5,null]},"intermediate_size":4,"model_type":"mistral",)"
    R"("num_attention_heads":2,"num_hidden_layers":1,"rope_theta":10000,"sliding_window":null,"head_dim":null,"hidden_act":"silu",)"
    R"("tie_word_embeddings":false,"max_position_embeddings":32768,"num_key_value_heads":2,"vocab_size":0,"rms_norm_eps":1e-05,"initializer_range":0.02})";

TEST(WholeConfig, IsKeptWholeInItsOrder) {
  const Model model = model_of(kMistral);
  EXPECT_EQ(model.card.model_type, "mistral");
  EXPECT_EQ(model.config->hidden_size, 8);
  EXPECT_EQ(model.config->head_dim, 4);
  EXPECT_EQ(to_json(model.config_json), kMistral);
  EXPECT_EQ(to_json(whole_config(model)), kWhole);
  EXPECT_THAT(list_other_config_keys(model), ElementsAre("architectures", "frobnication"));
}

// Formats that hold only the window report the switch.
TEST(WholeConfig, TheSwitchOfAWindowFollowsFromTheWindow) {
  const auto others = [](const std::string& window) {
    return list_other_config_keys(model_of(
        R"({"model_type":"qwen2","hidden_size":8,"intermediate_size":4,"num_attention_heads":2,"num_hidden_layers":1,)" +
        window + "}"));
  };
  EXPECT_THAT(others(R"("sliding_window":8,"use_sliding_window":true)"), IsEmpty());
  EXPECT_THAT(others(R"("sliding_window":8,"use_sliding_window":false)"), ElementsAre("use_sliding_window"));
}

TEST(WholeConfig, TravelsAsTextAndComesBackTheSame) {
  Model model = model_of(kMistral);
  Model reread;
  reread.attributes = make_text_attributes(model);
  EXPECT_EQ(*reread.attributes.find("poise.config"), Value(kWhole));
  parse_text_attributes(reread);
  EXPECT_EQ(reread.config, model.config);
  EXPECT_EQ(to_json(whole_config(reread)), kWhole);
  EXPECT_EQ(make_canonical_config(reread), make_canonical_config(model));
}

TEST(WholeConfig, WithoutAFileOnlyHyperparametersAreWritten) {
  Model model;
  model.card.model_type = "llama";
  model.config = Config{.hidden_size = 8};
  EXPECT_EQ(to_json(whole_config(model)), to_json(config_to_attributes(*model.config, "llama")));
  EXPECT_THAT(list_other_config_keys(model), IsEmpty());
}

// Without use_sliding_window, Qwen 2 has no window. The file keeps the number.
TEST(WholeConfig, ValuesThatTheFamilyIgnoresAreKept) {
  const Model model = model_of(
      R"({"num_hidden_layers":1,"num_attention_heads":2,"intermediate_size":4,"hidden_size":8,"sliding_window":32,"model_type":"qwen2"})");
  EXPECT_THAT(list_other_config_keys(model), IsEmpty());
  EXPECT_EQ(model.config->sliding_window, 0);
  EXPECT_THAT(
      to_json(whole_config(model)),
      HasSubstr(
          R"("hidden_size":8,"sliding_window":32,"model_type":"qwen2","hidden_act":"silu","tie_word_embeddings")"));
}

// The defaults of Llama are a guess, which neither a file nor another family takes over.
TEST(WholeConfig, WithoutAModelTypeHasNoDefaults) {
  constexpr const char* kSizes =
      R"({"num_hidden_layers":1,"num_attention_heads":2,"intermediate_size":4,"hidden_size":8})";
  Model model = model_of(kSizes);
  EXPECT_EQ(model.config->rms_norm_eps, 1e-6F);
  Model reread;
  reread.attributes = make_text_attributes(model);
  EXPECT_EQ(*reread.attributes.find("poise.config"), Value(kSizes));
  parse_text_attributes(reread);
  EXPECT_EQ(reread.config, model.config);
  reread.config->rope_theta = 5;
  set_model_type(reread, "mistral", "test");
  EXPECT_EQ(reread.card.model_type, "mistral");
  EXPECT_EQ(reread.config->rms_norm_eps, 1e-5F);
  EXPECT_EQ(reread.config->sliding_window, 4096);
  EXPECT_EQ(reread.config->max_position_embeddings, 32768);
  EXPECT_EQ(reread.config->rope_theta, 5) << "a program has set it";
  change_config(model, {{"model_type", "mistral"}}, "test");
  EXPECT_EQ(model.config->sliding_window, 4096);
  set_model_type(model, "llama", "test");
  EXPECT_EQ(model.config->sliding_window, 4096) << "the file names a family, whose values stay";
}

TEST(WholeConfig, ValuesThatAProgramSetsCount) {
  Model model = model_of(
      R"({"model_type":"llama","hidden_size":8,"intermediate_size":4,"num_attention_heads":2,"num_hidden_layers":1,"extra":1,)"
      R"("rope_parameters":{"rope_type":"default","rope_theta":5000}})");
  EXPECT_EQ(model.config->rope_theta, 5000);
  model.config->rope_theta = 7000;
  model.config->num_hidden_layers = 3;
  Model reread;
  parse_config(reread, whole_config(model), "test");
  EXPECT_EQ(reread.config, model.config);
  EXPECT_THAT(list_other_config_keys(reread), ElementsAre("extra", "rope_parameters"));
}

TEST(WholeConfig, OfAnUnknownFamilyIsKeptAsItIs) {
  constexpr const char* kGpt = R"({"model_type":"falcon","n_embd":768,"hidden_size":"many"})";
  const Model model = model_of(kGpt);
  EXPECT_EQ(model.card.model_type, "falcon");
  EXPECT_FALSE(model.config);
  EXPECT_EQ(to_json(whole_config(model)), kGpt);
  EXPECT_THAT(list_other_config_keys(model), ElementsAre("model_type", "n_embd", "hidden_size"));
  Model reread;
  reread.attributes = make_text_attributes(model);
  parse_text_attributes(reread);
  EXPECT_FALSE(reread.config);
  EXPECT_EQ(reread.config_json, model.config_json);
}

// Formats with hyperparameters of their own give a Config of such a family; config.json returns an equal one.
TEST(WholeConfig, OfAnUnknownFamilyIsReadIfItHasEveryKey) {
  Model model;
  model.card.model_type = "other";
  model.config = Config{};
  model.config->hidden_size = 8;
  Model reread;
  reread.attributes = make_text_attributes(model);
  parse_text_attributes(reread);
  EXPECT_EQ(reread.config, model.config);
  EXPECT_EQ(to_json(whole_config(reread)), to_json(whole_config(model)));
}

TEST(WholeConfig, NamesTheKeyThatIsWrong) {
  const auto refusal = [](const std::string& json) -> std::string {
    try {
      model_of(json);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(refusal(R"({"model_type":"llama"})"), HasSubstr("config.json: config: hidden_size: missing"));
  EXPECT_THAT(refusal(R"({"model_type":7})"), HasSubstr("config.json: config: model_type: expected text"));
  EXPECT_THAT(refusal(R"({"hidden_size":"4"})"), HasSubstr("hidden_size: expected an integer"));
  EXPECT_EQ(refusal(R"({"n_embd":4})"), "");
}

}  // namespace
}  // namespace poise
