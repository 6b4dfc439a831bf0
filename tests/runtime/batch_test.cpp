#include <poise/batch.hpp>

#include <limits>
#include <map>
#include <random>
#include <stop_token>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/session.hpp>

#include "runtime/random_model.hpp"
#include "runtime/transformer.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<TokenId> random_tokens(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 37);
  return tokens;
}

std::map<std::size_t, Generation> run_all(BatchGenerator& batch) {
  std::map<std::size_t, Generation> result;
  while (batch.size() > 0) {
    for (auto& text : batch.step()) EXPECT_TRUE(result.emplace(text.id, std::move(text.generation)).second);
  }
  return result;
}

Generation alone(const std::shared_ptr<const Weights>& weights, const std::vector<TokenId>& tokens,
                 const GenerateOptions& options, const SessionOptions& session_options) {
  Session session(weights, session_options);
  session.feed(tokens);
  return session.generate(options);
}

void expect_as_alone(const Config& config, const std::vector<std::vector<TokenId>>& prompts,
                     const std::vector<GenerateOptions>& options, std::size_t context = 0,
                     CacheType cache = CacheType::f32) {
  const auto weights = load_weights(make_model(config, random_weights(config)));
  const SessionOptions session_options = {.threads = 2, .context = context, .exact = true, .cache = cache};
  BatchGenerator batch(weights, session_options);
  for (std::size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(batch.add(prompts[i], options[i % options.size()]), i);
  const auto all = run_all(batch);
  ASSERT_EQ(all.size(), prompts.size());
  for (const auto& [id, generation] : all) {
    SCOPED_TRACE(id);
    const Generation expected = alone(weights, prompts[id], options[id % options.size()], session_options);
    EXPECT_EQ(generation.tokens, expected.tokens);
    EXPECT_EQ(generation.reason, expected.reason);
  }
}

TEST(BatchGenerator, GivesEachTextWhatItGetsAlone) {
  std::vector<std::vector<TokenId>> prompts;
  for (unsigned i = 0; i < 9; ++i) prompts.push_back(random_tokens(1 + 7 * i, i));
  for (const CacheType cache : {CacheType::f32, CacheType::f16, CacheType::q8})
    expect_as_alone(small_config(), prompts, {{.max_tokens = 12}, {.max_tokens = 3}, {.max_tokens = 0}}, 0, cache);
}

TEST(BatchGenerator, SamplesWithEachTextsOwnSeed) {
  GenerateOptions options = {.max_tokens = 10};
  options.sampling.temperature = 1.5F;
  options.sampling.repetition_penalty = 1.2F;
  std::vector<GenerateOptions> all(3, options);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].sampling.seed = i;
  expect_as_alone(small_config(), {random_tokens(5, 1), random_tokens(5, 1), random_tokens(9, 2)}, all);
}

TEST(BatchGenerator, SharesBeginnings) {
  const std::vector<TokenId> beginning = random_tokens(50, 1);
  std::vector<std::vector<TokenId>> prompts(4, beginning);
  for (unsigned i = 1; i < prompts.size(); ++i) {
    const auto rest = random_tokens(i, i);
    prompts[i].insert(prompts[i].end(), rest.begin(), rest.end());
  }
  prompts.push_back(beginning);  // all of it is another one's beginning
  expect_as_alone(small_config(), prompts, {{.max_tokens = 6}});
  Config windows = small_config();
  windows.sliding_window = 7;  // its caches forget the beginning
  expect_as_alone(windows, prompts, {{.max_tokens = 6}});
  expect_as_alone(windows, prompts, {{.max_tokens = 6}}, 0, CacheType::q8);
}

// A step has room for the last two texts only because 400 tokens of the third one are computed already.
TEST(BatchGenerator, ComputesABeginningOnce) {
  Config config = small_config();
  config.max_position_embeddings = 600;
  static_assert(Transformer::kMaxBatch >= 450 + 30 && Transformer::kMaxBatch < 450 + 430);
  BatchGenerator batch(load_weights(make_model(config, random_weights(config))), {.threads = 2});
  std::vector<TokenId> tokens = random_tokens(400, 1);
  batch.add(tokens, {.max_tokens = 1});
  EXPECT_EQ(batch.step().size(), 1U);
  const auto rest = random_tokens(30, 2);
  tokens.insert(tokens.end(), rest.begin(), rest.end());
  batch.add(random_tokens(450, 3), {.max_tokens = 1});
  batch.add(tokens, {.max_tokens = 1});
  EXPECT_EQ(batch.step().size(), 2U);
}

TEST(BatchGenerator, TakesPromptsLongerThanAStep) {
  Config config = small_config();
  constexpr std::size_t kStep = Transformer::kMaxBatch;
  config.max_position_embeddings = kStep + 100;
  expect_as_alone(config, {random_tokens(kStep + 88, 1), random_tokens(3, 2), random_tokens(kStep + 1, 3)},
                  {{.max_tokens = 4}});
}

TEST(BatchGenerator, TakesMoreTextsThanAStepHasTokens) {
  std::vector<std::vector<TokenId>> prompts;
  for (unsigned i = 0; i < Transformer::kMaxBatch + 44; ++i) prompts.push_back(random_tokens(2, i));
  expect_as_alone(small_config(), prompts, {{.max_tokens = 2}});
}

TEST(BatchGenerator, EndsTextsWhoseContextIsFull) {
  expect_as_alone(small_config(), {random_tokens(14, 1), random_tokens(4, 2)}, {{.max_tokens = 9}}, 16);
}

TEST(BatchGenerator, EndsTextsAtTheirStopId) {
  const Config config = small_config();
  const auto weights = load_weights(make_model(config, random_weights(config)));
  const TokenId first = alone(weights, random_tokens(5, 1), {.max_tokens = 1}, {}).tokens.front();
  BatchGenerator batch(weights);
  batch.add(random_tokens(5, 1), {.stop_id = first});
  const auto all = run_all(batch);
  EXPECT_EQ(all.at(0).reason, StopReason::end_of_text);
  EXPECT_THAT(all.at(0).tokens, ElementsAre(first));
}

TEST(BatchGenerator, ACancelledStepChangesNothing) {
  const Config config = small_config();
  const auto weights = load_weights(make_model(config, random_weights(config)));
  BatchGenerator batch(weights, {.exact = true});
  batch.add(random_tokens(5, 1), {.max_tokens = 5});
  batch.add(random_tokens(8, 2), {.max_tokens = 5});
  EXPECT_THAT(batch.step(), IsEmpty());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(support::error_of([&] { batch.step(stop.get_token()); }).kind(), ErrorKind::cancelled);
  const auto all = run_all(batch);
  EXPECT_EQ(all.at(0).tokens, alone(weights, random_tokens(5, 1), {.max_tokens = 5}, {.exact = true}).tokens);
  EXPECT_EQ(all.at(1).tokens, alone(weights, random_tokens(8, 2), {.max_tokens = 5}, {.exact = true}).tokens);
}

TEST(BatchGenerator, ACancelledStepKeepsTextsThatHaveEnded) {
  const Config config = small_config();
  BatchGenerator batch(load_weights(make_model(config, random_weights(config))));
  batch.add(random_tokens(5, 1), {.max_tokens = 0});
  batch.add(random_tokens(8, 2), {.max_tokens = 1});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(support::error_of([&] { batch.step(stop.get_token()); }).kind(), ErrorKind::cancelled);
  EXPECT_EQ(batch.size(), 2U);
  const auto all = run_all(batch);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_THAT(all.at(0).tokens, IsEmpty());
  EXPECT_EQ(all.at(0).reason, StopReason::max_tokens);
  EXPECT_EQ(all.at(1).tokens.size(), 1U);
}

TEST(BatchGenerator, AFailedStepFailsAgain) {
  const Config config = small_config();
  NamedNumbers broken = random_weights(config);
  broken.at("model.norm.weight")[3] = std::numeric_limits<float>::quiet_NaN();
  BatchGenerator batch(load_weights(make_model(config, broken)));
  batch.add(random_tokens(5, 1), {.max_tokens = 5});
  for (int attempt = 0; attempt < 3; ++attempt)
    EXPECT_EQ(support::error_of([&] { batch.step(); }).kind(), ErrorKind::unsupported) << attempt;
  EXPECT_EQ(batch.size(), 1U);
}

TEST(BatchGenerator, RefusesWhatCannotBeComputed) {
  const Config config = small_config();
  const auto weights = load_weights(make_model(config, random_weights(config)));
  BatchGenerator batch(weights, {.context = 16});
  const auto message = [&](std::vector<TokenId> tokens, const GenerateOptions& options = {}) {
    const Error error = support::error_of([&] { batch.add(std::move(tokens), options); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
    return error.message();
  };
  EXPECT_THAT(message({}), HasSubstr("the text has no tokens"));
  EXPECT_THAT(message({1, 37}), HasSubstr("token 37 is out of range: the model has 37 tokens"));
  EXPECT_THAT(message(random_tokens(17, 1)), HasSubstr("17 tokens do not fit the context of 16 tokens"));
  EXPECT_THAT(message({1}, {.stop_id = 99}), HasSubstr("stop id 99 is out of range"));
  EXPECT_EQ(batch.size(), 0U);
  EXPECT_EQ(support::error_of([] { BatchGenerator none(nullptr); }).kind(), ErrorKind::bad_argument);
}

}  // namespace
}  // namespace poise
