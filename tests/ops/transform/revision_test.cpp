// Names, layers, tokens and keys that a conversion changes. tests/commands/rename_and_cut.txt has the errors, and
// tests/runtime/cut_models.py the computation of cut models.
#include "ops/transform/revision.hpp"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/tokenizer.hpp>

#include "family/config_json.hpp"
#include "ops/transform/support.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

using Names = std::vector<std::string>;

std::shared_ptr<Model> make_named(const Names& names) {
  auto model = std::make_shared<Model>();
  for (const std::string& name : names) model->add(zeros(name, {4, 2}, DType::f32));
  return model;
}

RevisedModel revise(const std::shared_ptr<Model>& model, const ConvertOptions& options) {
  return revise_model({model, {{"a", "q8_0"}}}, find_format_by_name("zt"), options);
}

Names list_tensors(const RevisedModel& revised) {
  Names names;
  for (const Tensor& tensor : revised.model->tensors()) names.push_back(tensor.name);
  return names;
}

TEST(Revision, WithoutOptionsIsTheSameModel) {
  const auto model = make_named({"a"});
  const RevisedModel revised = revise(model, {});
  EXPECT_EQ(revised.model, model);
  EXPECT_EQ(revised.find_name("a"), "a");
  EXPECT_THAT(revised.changes, IsEmpty());
}

TEST(Revision, StripsRenamesAndAddsInThisOrder) {
  ConvertOptions options;
  options.strip_prefix = "m.";
  options.rename = {{"a", "b"}, {"b", "c"}, {"x.*.*", "y.*-*"}, {"re:^z(.)", "$1$$\\0"}};
  options.add_prefix = "n.";
  const RevisedModel revised = revise(make_named({"a", "m.b", "m.x.1.2", "zq", "other"}), options);
  EXPECT_THAT(list_tensors(revised), ElementsAre("n.b", "n.c", "n.y.1-2", "n.q$zq", "n.other"));
  EXPECT_EQ(revised.find_name("m.b"), "n.c");
  EXPECT_THAT(revised.types, ElementsAre(testing::Pair("n.b", "q8_0")));  // follows its tensor
}

TEST(Revision, MatchesNamesInTheFile) {
  const auto model = std::make_shared<Model>();
  Tensor tensor = zeros("a", {1}, DType::f32);
  tensor.file_name = std::make_shared<const std::string>("blk.0.a");
  model->add(tensor);
  ConvertOptions options;
  options.rename = {{"blk.*", "b*"}};
  EXPECT_THAT(list_tensors(revise(model, options)), ElementsAre("b0.a"));
}

TEST(Revision, ARegularExpressionReplacesEveryMatch) {
  ConvertOptions options;
  options.rename = {{"re:\\.", "_"}};
  EXPECT_THAT(list_tensors(revise(make_named({"a.b.c", "d"}), options)), ElementsAre("a_b_c", "d"));
  options.rename = {{"re:(.*)", "x.$1"}};
  EXPECT_THAT(list_tensors(revise(make_named({"a", "b"}), options)), ElementsAre("x.a", "x.b"));
}

TEST(Revision, ListsCollisionsAndUnusedPatterns) {
  ConvertOptions options;
  options.rename = {{"?", "same"}};
  EXPECT_THAT(
      [&] {
        revise(make_named({"a", "b", "same"}), options);
      },
      ThrowsMessage<Error>(HasSubstr("rename: several tensors would have one name: same (from a, b, same)")));
  options.rename = {{"a", "b"}, {"a", "c"}, {"d", "e"}};
  EXPECT_THAT([&] { revise(make_named({"a"}), options); }, ThrowsMessage<Error>(HasSubstr("\"a\", \"d\"")));
}

TEST(Revision, ErrorsOfNamesAreOfTheOptionThatMadeThem) {
  ConvertOptions options;
  options.strip_prefix = "m.";
  EXPECT_THAT(
      [&] {
        revise(make_named({"a", "m.a"}), options);
      },
      ThrowsMessage<Error>(HasSubstr("strip_prefix: several tensors would have one name: a (from a, m.a)")));
  EXPECT_THAT([&] { revise(make_named({"m."}), options); },
              ThrowsMessage<Error>(HasSubstr("strip_prefix: the new name of tensor m. is empty")));
  options.rename = {{"x", "y"}};
  EXPECT_THAT(
      [&] {
        revise(make_named({"a", "m.a", "x"}), options);
      },
      ThrowsMessage<Error>(HasSubstr("strip_prefix: several")));
  options.rename = {{"b", "a"}};
  EXPECT_THAT([&] { revise(make_named({"a", "m.b"}), options); }, ThrowsMessage<Error>(HasSubstr("rename: several")));
}

// Makes a model with a tensor in each layer. In Gemma 2 every second layer has a window.
std::shared_ptr<Model> make_layers(const std::string& model_type, std::uint64_t layers) {
  Names names = {"model.embed_tokens.weight"};
  for (std::uint64_t layer = 0; layer < layers; ++layer)
    names.push_back("model.layers." + std::to_string(layer) + ".input_layernorm.weight");
  auto model = make_named(names);
  parse_config(*model,
               {{"model_type", model_type},
                {"hidden_size", 2},
                {"intermediate_size", 2},
                {"num_hidden_layers", layers},
                {"num_attention_heads", 1},
                {"num_key_value_heads", 1},
                {"head_dim", 2},
                {"vocab_size", 4}},
               {});
  return model;
}

TEST(Revision, NumbersLayersFromZero) {
  ConvertOptions options;
  options.layers = "1,3:";
  const RevisedModel revised = revise(make_layers("llama", 5), options);
  EXPECT_EQ(revised.find_name("model.layers.3.input_layernorm.weight"), "model.layers.1.input_layernorm.weight");
  EXPECT_EQ(revised.find_name("model.layers.2.input_layernorm.weight"), "");
  EXPECT_THAT(revised.left_out,
              ElementsAre("model.layers.0.input_layernorm.weight", "model.layers.2.input_layernorm.weight"));
  EXPECT_EQ(revised.model->config->num_hidden_layers, 3);
  EXPECT_EQ(revised.model->config_json.find("layer_types"), nullptr);
}

// "=" names the list whose names begin with the number; without it the longest list counts.
TEST(Revision, LayersMayHaveNoPrefix) {
  const auto model = make_named({"a.0.w", "a.1.w", "a.2.w", "0.w", "1.w", "2"});
  parse_config(*model, {{"model_type", "unknown"}, {"transformers_version", "1.40.0"}}, {});
  ConvertOptions options;
  options.layers = "=1:";
  const RevisedModel revised = revise(model, options);
  EXPECT_THAT(list_tensors(revised), ElementsAre("a.0.w", "a.1.w", "a.2.w", "0.w", "1"));
  EXPECT_EQ(*revised.model->config_json.find("transformers_version"), Value("1.40.0"));
  EXPECT_THAT([&] { revise(make_named({"a.0.w"}), options); },
              ThrowsMessage<Error>(HasSubstr("layers: no tensor's name begins with a number")));
  options.layers = "0";
  EXPECT_THAT(
      [&] {
        revise(make_named({"0.w", "a.0.w"}), options);
      },
      ThrowsMessage<Error>(HasSubstr("1 layers: names that begin with the number, a.; name one, as in =0:1")));
}

TEST(Revision, LayersKeepTheWindowsOfTheirPlaces) {
  ConvertOptions options;
  options.layers = "0,2,3";
  const RevisedModel revised = revise(make_layers("gemma2", 4), options);
  const auto* types = revised.model->config_json.get_if<Value::Array>("layer_types");
  ASSERT_NE(types, nullptr);
  EXPECT_EQ(*types, (Value::Array{"sliding_attention", "sliding_attention", "full_attention"}));
  options.layers = "0:2";
  EXPECT_EQ(revise(make_layers("gemma2", 4), options).model->config_json.find("layer_types"), nullptr);
}

TEST(Revision, AConfigurationWithMoreLayersThanTensorsIsRefused) {
  const auto model = make_layers("llama", 2);
  model->config->num_hidden_layers = 1'000'000'000;
  ConvertOptions options;
  options.layers = "0:1";
  EXPECT_THAT([&] { revise(model, options); }, ThrowsMessage<Error>(HasSubstr("1000000000 layers")));
}

TEST(Revision, CutsTokensWithTheirMergesAndAddedTokens) {
  const auto model = make_layers("llama", 1);
  VocabularySettings settings;
  settings.kind = VocabularyKind::pipeline;
  settings.merges = {{"a", "b"}, {"b", "a"}};
  settings.pipeline = {{"added_tokens", Value::Array{Attributes{{"id", 3}, {"content", "x"}}}}};
  Vocabulary vocabulary(settings);
  for (const char* text : {"a", "b", "ab", "ba"}) vocabulary.add(text, 0, TokenType::normal);
  model->vocabulary = vocabulary;
  ConvertOptions options;
  options.vocab_size = 3;
  const RevisedModel revised = revise(model, options);
  const Vocabulary& cut = *revised.model->vocabulary;
  EXPECT_EQ(cut.size(), 3U);
  ASSERT_EQ(cut.merges.size(), 1U);
  EXPECT_EQ(cut.merges.joined(0), "ab");
  EXPECT_EQ(*cut.pipeline.find("added_tokens"), Value(Value::Array()));
  EXPECT_EQ(revised.model->find("model.embed_tokens.weight")->shape, Shape({3, 2}));
  EXPECT_EQ(revised.model->config->vocab_size, 3);
}

TEST(Revision, SpecialTokensStay) {
  const auto model = make_layers("llama", 1);
  model->vocabulary.emplace();
  for (const char* text : {"a", "b", "c", "<eos>"}) model->vocabulary->add(text, 0, TokenType::normal);
  model->vocabulary->eos_id = 3;
  ConvertOptions options;
  options.vocab_size = 3;
  EXPECT_THAT([&] { revise(model, options); }, ThrowsMessage<Error>(HasSubstr("special tokens: <eos> (3")));
}

// A vocabulary may have more tokens than the embedding has rows. No text gets their ids.
TEST(Revision, SpecialTokensWithoutARowAreNoObstacle) {
  const auto model = make_layers("llama", 1);
  model->config_json.set("pad_token_id", 5);
  model->vocabulary.emplace();
  for (const char* text : {"a", "b", "c", "d", "e"}) model->vocabulary->add(text, 0, TokenType::normal);
  model->vocabulary->add("<pad>", 0, TokenType::control);
  model->vocabulary->pad_id = 5;
  ConvertOptions options;
  options.vocab_size = 3;
  const RevisedModel cut = revise(model, options);
  EXPECT_EQ(cut.model->vocabulary->size(), 3U);
  EXPECT_EQ(cut.model->vocabulary->pad_id, -1);
  EXPECT_EQ(cut.model->find("model.embed_tokens.weight")->shape, Shape({3, 2}));
  options.vocab_size = 4;
  EXPECT_EQ(revise(model, options).model->vocabulary->size(), 4U);
  // All rows have a token, so that none is left out.
  options = {};
  options.drop_rows = true;
  const RevisedModel same = revise(model, options);
  EXPECT_EQ(same.model->vocabulary, model->vocabulary);
  EXPECT_EQ(same.model->find("model.embed_tokens.weight")->shape, Shape({4, 2}));
}

TEST(Revision, ErrorsOfDroppedRowsNameTheirOption) {
  ConvertOptions options;
  options.drop_rows = true;
  const auto model = make_layers("llama", 1);
  EXPECT_THAT([&] { revise(model, options); }, ThrowsMessage<Error>(HasSubstr("drop_rows: the model has no voc")));
  model->vocabulary.emplace();
  EXPECT_THAT([&] { revise(model, options); }, ThrowsMessage<Error>(HasSubstr("drop_rows: a model has at least 1")));
  for (const char* text : {"a", "b", "c"}) model->vocabulary->add(text, 0, TokenType::normal);
  model->config_json.set("eos_token_id", 3);
  EXPECT_THAT([&] { revise(model, options); },
              ThrowsMessage<Error>(
                  HasSubstr("drop_rows: 3 would leave out special tokens: eos_token_id 3 of the configuration")));
  const auto unknown = make_named({"a"});
  unknown->vocabulary = model->vocabulary;
  EXPECT_THAT([&] { revise(unknown, options); }, ThrowsMessage<Error>(HasSubstr("drop_rows: the model has no emb")));
}

// Ids of tokens that are left out, in any field of the vocabulary, would make it invalid.
TEST(Revision, ACutVocabularyMakesATokenizer) {
  const auto model = make_layers("llama", 1);
  VocabularySettings settings;
  settings.kind = VocabularyKind::pipeline;
  settings.pipeline = {{"model", Attributes{{"type", "BPE"}, {"added_only", Value::Array{2, 3}}}},
                       {"added_tokens", Value::Array{Attributes{{"id", 2}, {"content", "x"}, {"special", false}},
                                                     Attributes{{"id", 3}, {"content", "y"}, {"special", false}}}}};
  Vocabulary vocabulary(settings);
  for (const char* text : {"a", "b"}) vocabulary.add(text, 0, TokenType::normal);
  for (const char* text : {"x", "y"}) vocabulary.add(text, 0, TokenType::user_defined);
  model->vocabulary = vocabulary;
  ConvertOptions options;
  options.vocab_size = 3;
  const Tokenizer tokenizer(*revise(model, options).model->vocabulary);
  EXPECT_THAT(tokenizer.encode("abx"), ElementsAre(0, 1, 2));
}

TEST(Revision, SetsValuesOfTheOldType) {
  const auto model = make_layers("llama", 1);
  model->attributes = {{"count", 3}, {"names", Value::Array{"a"}}, {"text", "1"}};
  ConvertOptions options;
  options.set = {{"count", "4"}, {"names", "[\"b\"]"},  {"text", "2"},
                 {"new", "5"},   {"card.author", "me"}, {"config.new", "[1]"}};
  const RevisedModel revised = revise(model, options);
  EXPECT_EQ(revised.model->attributes,
            (Attributes{{"count", 4}, {"names", Value::Array{"b"}}, {"text", "2"}, {"new", "5"}}));
  EXPECT_EQ(revised.model->card.author, "me");
  EXPECT_EQ(*revised.model->config_json.find("new"), Value(Value::Array{1}));
  options.set = {{"count", "many"}};
  EXPECT_THAT([&] { revise(model, options); }, ThrowsMessage<Error>(HasSubstr("set: count is a number")));
}

}  // namespace
}  // namespace poise
