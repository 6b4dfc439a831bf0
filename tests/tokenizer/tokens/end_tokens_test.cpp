// The tokens that end a text, by all files that state them.
#include "tokenizer/tokens/token_types.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace poise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Vocabulary of_size(int size) {
  Vocabulary vocabulary;
  for (int id = 0; id < size; ++id) vocabulary.add(std::to_string(id), 0, TokenType::normal);
  return vocabulary;
}

TEST(EndTokens, AreThoseThatTheFilesList) {
  Vocabulary vocabulary = of_size(20);
  Model model;
  EXPECT_THAT(find_end_tokens(model, vocabulary.eos_id, vocabulary.size()), IsEmpty());
  vocabulary.eos_id = 2;
  EXPECT_THAT(find_end_tokens(model, vocabulary.eos_id, vocabulary.size()), ElementsAre(2));
  model.config_json.set("eos_token_id", Value::Array{2, 3});
  EXPECT_THAT(find_end_tokens(model, vocabulary.eos_id, vocabulary.size()), ElementsAre(2, 3));
  model.attributes.set(std::string(kGenerationConfig), Attributes{{"eos_token_id", 4}});
  EXPECT_THAT(find_end_tokens(model, vocabulary.eos_id, vocabulary.size()), ElementsAre(2, 3, 4));
  model.attributes.set(std::string(kGenerationConfig),
                       R"({"eos_token_id": [5, 3]})");  // as formats that store texts have it
  EXPECT_THAT(find_end_tokens(model, vocabulary.eos_id, vocabulary.size()), ElementsAre(2, 3, 5));
  model.attributes.set("tokenizer.ggml.eot_token_id", 6);
  model.attributes.set("tokenizer.ggml.eom_token_id", 7);
  EXPECT_THAT(find_end_tokens(model, vocabulary.eos_id, vocabulary.size()), ElementsAre(2, 3, 5, 6, 7));
  model.config_json.set("text_config", Attributes{{"eos_token_id", Value::Array{8, 2}}});  // of a multimodal directory
  EXPECT_THAT(find_end_tokens(model, vocabulary.eos_id, vocabulary.size()), ElementsAre(2, 3, 8, 5, 6, 7));
}

TEST(EndTokens, SkipValuesThatAreNotTokens) {
  const Vocabulary vocabulary = of_size(4);
  Model model;
  model.config_json.set("eos_token_id", Value::Array{-1, 4, "2", nullptr, 3});
  model.attributes.set(std::string(kGenerationConfig), "{no JSON");
  model.attributes.set("tokenizer.ggml.eot_token_id", Value());
  EXPECT_THAT(find_end_tokens(model, vocabulary.eos_id, vocabulary.size()), ElementsAre(3));
}

}  // namespace
}  // namespace poise
