// The parts of a decoder's plan that sessions use. independent_forward.py checks the numbers that families compute.
#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/session.hpp>

#include "runtime/matrix.hpp"
#include "runtime/random_model.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> logits_of(const Model& model, const std::vector<std::vector<TokenId>>& pieces) {
  Session session(model);
  for (const auto& piece : pieces) session.feed(piece);
  return {session.logits().begin(), session.logits().end()};
}

// Frequencies that change with the length of a text: once it has grown, all of it is as if it had been that long from
// the start.
TEST(Decoder, ATextThatBecomesLongIsComputedAgain) {
  const Config config = small_config();
  Model model = make_model(config, random_weights(config));
  const auto half = static_cast<std::size_t>(config.head_dim / 2);
  model.config_json.set("original_max_position_embeddings", 6);
  model.config_json.set("rope_scaling", Attributes{{"rope_type", "longrope"},
                                                   {"short_factor", Value::Array(half, Value(1.0))},
                                                   {"long_factor", Value::Array(half, Value(3.0))}});
  const std::vector<float> at_once = logits_of(model, {{1, 2, 3, 4, 5, 6, 7, 8}});
  EXPECT_EQ(logits_of(model, {{1, 2, 3}, {4, 5, 6, 7, 8}}), at_once);
  EXPECT_EQ(logits_of(model, {{1, 2, 3, 4, 5, 6}, {7, 8}}).size(), at_once.size());
  Session session(model);
  session.feed(std::vector<TokenId>{1, 2, 3, 4, 5, 6, 7, 8});
  session.reset();
  session.feed(std::vector<TokenId>{1, 2, 3});
  EXPECT_EQ(std::vector<float>(session.logits().begin(), session.logits().end()), logits_of(model, {{1, 2, 3}}))
      << "a new text is short again";
  model.config_json.set("rope_scaling", Value());
  EXPECT_NE(logits_of(model, {{1, 2, 3, 4, 5, 6, 7, 8}}), at_once);
}

// llama.cpp's files of Llama 3.1 have a tensor in place of rope_scaling. Linear scaling is the same in both forms.
TEST(Decoder, FrequenciesAreDividedByTheTensorThatModelsMayHave) {
  const Config config = small_config();
  Model model = make_model(config, random_weights(config));
  Model scaled = make_model(config, random_weights(config));
  scaled.config_json.set("rope_scaling", Attributes{{"rope_type", "linear"}, {"factor", 4}});
  const auto half = static_cast<std::size_t>(config.head_dim / 2);
  model.add(float_tensor("rope_freqs.weight", {half}, std::vector<float>(half, 4.0F)));
  EXPECT_EQ(logits_of(model, {{1, 2, 3, 4}}), logits_of(scaled, {{1, 2, 3, 4}}));
  Model wrong = make_model(config, random_weights(config));
  wrong.add(float_tensor("rope_freqs.weight", {half + 1}, std::vector<float>(half + 1, 4.0F)));
  EXPECT_THAT([&] { Session session(wrong); }, testing::ThrowsMessage<Error>(HasSubstr("rope_freqs.weight has")));
}

// eos_token_id of config.json may be a list; each of them ends a text.
TEST(Decoder, AnyOfSeveralTokensEndsAText) {
  const Config config = small_config();
  Model model = make_model(config, random_weights(config));
  Session free(model);
  free.feed(std::vector<TokenId>{1});
  const Generation unended = free.generate({.max_tokens = 4});
  ASSERT_EQ(unended.tokens.size(), 4U);
  model.config_json.set("eos_token_id", Value::Array{Value("none"), Value(1000000), Value(unended.tokens[1])});
  Session session(model);
  session.feed(std::vector<TokenId>{1});
  const Generation ended = session.generate({.max_tokens = 4});
  EXPECT_EQ(ended.reason, StopReason::end_of_text);
  const auto end = std::ranges::find(unended.tokens, unended.tokens[1]);
  EXPECT_EQ(ended.tokens, std::vector<TokenId>(unended.tokens.begin(), end + 1));
}

TEST(Matrices, OfATensorOfRankThreeAreSeveral) {
  std::vector<float> numbers(2 * 3 * 4);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const auto matrices = load_matrices(float_tensor("experts", {2, 3, 4}, numbers), Orientation::in_out);
  ASSERT_EQ(matrices.size(), 2U);
  EXPECT_EQ(matrices[1]->inputs(), 3U);
  EXPECT_EQ(matrices[1]->outputs(), 4U);
  std::vector<float> row(4);
  matrices[1]->decode(2, 1, row.data());
  EXPECT_THAT(row, ElementsAre(20, 21, 22, 23));
  const std::vector<float> x = {1, 10, 100};
  multiply(*matrices[1], x.data(), 1, row.data());
  EXPECT_THAT(row, ElementsAre(12 + 160 + 2000, 13 + 170 + 2100, 14 + 180 + 2200, 15 + 190 + 2300));
  EXPECT_THROW(load_matrices(float_tensor("one", {3, 4}, std::vector<float>(12)), Orientation::in_out), Error);
}

}  // namespace
}  // namespace poise
