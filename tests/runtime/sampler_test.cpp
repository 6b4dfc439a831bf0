#include <poise/sampler.hpp>

#include <cmath>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/errors.hpp"

namespace poise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const float kInfinity = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<int> counts(const SamplingOptions& options, const std::vector<float>& logits, int draws) {
  Sampler sampler(options);
  std::vector<int> result(logits.size());
  for (int i = 0; i < draws; ++i) ++result[static_cast<std::size_t>(sampler.sample(logits))];
  return result;
}

TEST(Sampler, TakesTheBestTokenByDefault) {
  Sampler sampler;
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 3, 2}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{2, 3, 3}), 1) << "the lower id of equals";
  EXPECT_EQ(sampler.sample(std::vector<float>{-kInfinity, -5}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{-kInfinity}), 0);
}

TEST(Sampler, FollowsTheProbabilities) {
  const std::vector<float> logits = {std::log(1.0F), std::log(2.0F), std::log(5.0F), -kInfinity};
  const auto at_one = counts({.temperature = 1, .seed = 1}, logits, 80000);
  EXPECT_NEAR(at_one[0], 10000, 500);
  EXPECT_NEAR(at_one[1], 20000, 600);
  EXPECT_NEAR(at_one[2], 50000, 700);
  EXPECT_EQ(at_one[3], 0);
  // At temperature 1/2 the probabilities are squared: 1, 4, 25 of 30.
  const auto cooler = counts({.temperature = 0.5F, .seed = 1}, logits, 30000);
  EXPECT_NEAR(cooler[0], 1000, 150);
  EXPECT_NEAR(cooler[1], 4000, 300);
}

TEST(Sampler, TopKAndTopPLeaveTheRestOut) {
  const std::vector<float> logits = {std::log(0.1F), std::log(0.4F), std::log(0.3F), std::log(0.2F)};
  const auto drawn = [&](const SamplingOptions& options) {
    std::set<int> ids;
    const auto result = counts(options, logits, 5000);
    for (std::size_t id = 0; id < result.size(); ++id) {
      if (result[id] > 0) ids.insert(static_cast<int>(id));
    }
    return ids;
  };
  EXPECT_THAT(drawn({.temperature = 1, .top_k = 1}), ElementsAre(1));
  EXPECT_THAT(drawn({.temperature = 1, .top_k = 2}), ElementsAre(1, 2));
  EXPECT_THAT(drawn({.temperature = 1, .top_k = 9}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(drawn({.temperature = 1, .top_p = 0.01F}), ElementsAre(1));
  EXPECT_THAT(drawn({.temperature = 1, .top_p = 0.65F}), ElementsAre(1, 2));
  EXPECT_THAT(drawn({.temperature = 1, .top_p = 0.75F}), ElementsAre(1, 2, 3));
  // Of the two best, 4/7 is the first one's.
  EXPECT_THAT(drawn({.temperature = 1, .top_k = 2, .top_p = 0.5F}), ElementsAre(1));
}

// The C++ standard gives the 10000th number of std::mt19937_64 seeded with 5489: 9981545732273789042, which is 0.541 of
// 2^64.
TEST(Sampler, TheSeedDecidesOnEveryMachine) {
  Sampler sampler({.temperature = 1, .seed = 5489});
  const std::vector<float> logits(100, 0);
  for (int i = 0; i < 9999; ++i) sampler.sample(logits);
  EXPECT_EQ(sampler.sample(logits), 54);
  EXPECT_EQ(counts({.temperature = 1, .seed = 7}, logits, 1000), counts({.temperature = 1, .seed = 7}, logits, 1000));
  EXPECT_NE(counts({.temperature = 1, .seed = 7}, logits, 1000), counts({.temperature = 1, .seed = 8}, logits, 1000));
}

std::string error_of(const SamplingOptions& options, const std::vector<float>& logits = {0}) {
  return support::message_of([&] { Sampler(options).sample(logits); });
}

TEST(Sampler, RefusesScoresThatAreNotNumbers) {
  EXPECT_THAT(error_of({}, {1, kNaN}), HasSubstr("the score of token 1 is nan"));
  EXPECT_THAT(error_of({.temperature = 1}, {kNaN, 1}), HasSubstr("the score of token 0 is nan"));
  EXPECT_THAT(error_of({}, {1, 2, kInfinity}), HasSubstr("the score of token 2 is inf"));
}

TEST(Sampler, RefusesOptionsThatMakeNoSense) {
  EXPECT_THAT(error_of({.temperature = -1}), HasSubstr("temperature is -1"));
  EXPECT_THAT(error_of({.temperature = kNaN}), HasSubstr("temperature is nan"));
  EXPECT_THAT(error_of({.top_k = -1}), HasSubstr("top-k is -1"));
  EXPECT_THAT(error_of({.top_p = 0}), HasSubstr("top-p is 0"));
  EXPECT_THAT(error_of({.top_p = 1.5F}), HasSubstr("top-p is 1.5"));
}

TEST(Sampler, MinPLeavesOutWhatIsFarFromTheBest) {
  const std::vector<float> logits = {std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  const auto drawn = counts({.temperature = 1, .seed = 3, .min_p = 0.5F}, logits, 8000);
  EXPECT_EQ(drawn[2], 0) << "0.2 is less than half of 0.5";
  EXPECT_NEAR(drawn[0], 5000, 200);
  EXPECT_EQ(counts({.temperature = 1, .seed = 3, .min_p = 1}, logits, 100)[0], 100);
}

TEST(Sampler, BiasesComeFirst) {
  Sampler sampler({.logit_bias = {{0, 5.0F}, {1, -9.0F}, {0, -1.0F}}});
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 3, 4.5F}), 0) << "1 + 5 - 1 is more than 4.5";
  EXPECT_THROW((void)sampler.sample(std::vector<float>{1}), Error);
  EXPECT_THROW(Sampler({.logit_bias = {{-1, 1.0F}}}), Error);
  EXPECT_THROW(Sampler({.logit_bias = {{1, kNaN}}}), Error);
}

TEST(Sampler, RepetitionMakesSeenTokensLessLikely) {
  Sampler sampler({.repetition_penalty = 2});
  sampler.see(std::vector<TokenId>{1});
  EXPECT_EQ(sampler.sample(std::vector<float>{2, 3}), 0) << "3 / 2 is less than 2";
  EXPECT_EQ(sampler.sample(std::vector<float>{2, 3}), 1) << "0 was sampled: 2 / 2";
  Sampler negative({.repetition_penalty = 3});
  negative.see(std::vector<TokenId>{0});
  EXPECT_EQ(negative.sample(std::vector<float>{-1, -2}), 1) << "-1 * 3 is less than -2";
}

TEST(Sampler, PenaltiesCountWhatWasSampledAndNotWhatWasSeen) {
  Sampler presence({.presence_penalty = 0.75F});
  presence.see(std::vector<TokenId>{0});
  const std::vector<float> close = {1, 0.5F};
  EXPECT_EQ(presence.sample(close), 0);
  EXPECT_EQ(presence.sample(close), 1) << "0.25 and 0.5";
  EXPECT_EQ(presence.sample(close), 0) << "0.25 and -0.25";
  Sampler frequency({.frequency_penalty = 1});
  const std::vector<float> apart = {2, 0.5F};
  std::vector<TokenId> drawn;
  for (int i = 0; i < 4; ++i) drawn.push_back(frequency.sample(apart));
  EXPECT_THAT(drawn, ElementsAre(0, 0, 1, 0)) << "2, 1, 0 against 0.5; then 0 against -0.5";
}

TEST(Sampler, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_THROW(Sampler({.min_p = 1.5F}), Error);
  EXPECT_THROW(Sampler({.min_p = kNaN}), Error);
  EXPECT_THROW(Sampler({.repetition_penalty = 0}), Error);
  EXPECT_THROW(Sampler({.presence_penalty = kInfinity}), Error);
  EXPECT_THROW(Sampler({.frequency_penalty = kNaN}), Error);
}

TEST(Sampler, LogProbabilitiesOfTheBestTokens) {
  const std::vector<float> logits = {std::log(2.0F), std::log(5.0F), std::log(1.0F), std::log(2.0F)};
  const auto best = top_log_probabilities(logits, 3);
  ASSERT_EQ(best.size(), 3U);
  EXPECT_EQ(best[0].token, 1);
  EXPECT_EQ(best[1].token, 0) << "the lower id of equals";
  EXPECT_EQ(best[2].token, 3);
  EXPECT_NEAR(best[0].log_probability, std::log(0.5), 1e-6);
  EXPECT_NEAR(best[2].log_probability, std::log(0.2), 1e-6);
  EXPECT_NEAR(log_probability(logits, 2), std::log(0.1), 1e-6);
  EXPECT_EQ(top_log_probabilities(logits, 9).size(), 4U);
  EXPECT_TRUE(top_log_probabilities(logits, 0).empty());
}

}  // namespace
}  // namespace poise
