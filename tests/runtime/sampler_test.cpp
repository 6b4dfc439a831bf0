#include <poise/sampler.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include <fmt/format.h>
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

// Returns scores of a normal distribution, some of them equal.
std::vector<float> many_logits(std::size_t count, float deviation) {
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> logits(count);
  for (std::size_t id = 0; id < count; ++id) logits[id] = id % 7 == 6 ? logits[id - 3] : normal(random);
  logits[count / 2] = -kInfinity;
  return logits;
}

// Returns each token's probability by the definition, which sorts all tokens.
std::vector<long double> expected_probabilities(const SamplingOptions& options, const std::vector<float>& logits) {
  std::vector<std::size_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), std::size_t{0});
  std::ranges::stable_sort(ids, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (options.top_k > 0) ids.resize(std::min(ids.size(), static_cast<std::size_t>(options.top_k)));
  std::vector<long double> weights(logits.size());
  const auto normalize = [&] {
    const long double sum = std::accumulate(weights.begin(), weights.end(), 0.0L);
    for (long double& weight : weights) weight /= sum;
  };
  for (const std::size_t id : ids)
    weights[id] = std::exp((static_cast<long double>(logits[id]) - static_cast<long double>(logits[ids.front()])) /
                           static_cast<long double>(options.temperature));
  normalize();
  long double before = 0;
  for (const std::size_t id : ids) {
    const long double own = weights[id];
    if (options.top_p < 1 && before >= static_cast<long double>(options.top_p)) weights[id] = 0;
    before += own;
  }
  const long double best = weights[ids.front()];
  for (long double& weight : weights) {
    if (weight < static_cast<long double>(options.min_p) * best) weight = 0;
  }
  normalize();
  return weights;
}

const std::vector<SamplingOptions> kWaysToSample = {
    {.temperature = 0.8F},
    {.temperature = 1.7F, .top_k = 60},
    {.temperature = 1, .top_p = 0.9F},
    {.temperature = 1, .top_p = 0.3F},
    {.temperature = 1, .min_p = 0.05F},
    {.temperature = 1.3F, .top_k = 100, .top_p = 0.8F, .min_p = 0.1F},
    {.temperature = 1, .top_k = 1},
    {.temperature = 1, .top_p = 1e-6F},
};

// Pearson's chi-squared test: with the right probabilities, a sum of n cells is larger than n + 6 sqrt(2 n) once in
// some million of seeds.
TEST(Sampler, DrawsFromTheDistributionOfItsOptions) {
  constexpr int kDraws = 20000;
  for (const float deviation : {1.0F, 4.0F}) {
    const std::vector<float> logits = many_logits(200, deviation);
    for (SamplingOptions options : kWaysToSample) {
      SCOPED_TRACE(fmt::format("deviation {}, temperature {}, top_k {}, top_p {}, min_p {}", deviation,
                               options.temperature, options.top_k, options.top_p, options.min_p));
      options.seed = 5;
      const std::vector<long double> probabilities = expected_probabilities(options, logits);
      const std::vector<int> drawn = counts(options, logits, kDraws);
      double sum = 0;
      double cells = 0;
      double rest = 0;  // rare tokens, as one cell
      double rest_drawn = 0;
      const auto add = [&](double expected, double found) {
        if (expected <= 0) return;
        sum += (found - expected) * (found - expected) / expected;
        ++cells;
      };
      for (std::size_t id = 0; id < logits.size(); ++id) {
        if (probabilities[id] == 0) {
          ASSERT_EQ(drawn[id], 0) << id;
        } else if (const auto expected = static_cast<double>(probabilities[id] * kDraws); expected < 10) {
          rest += expected;
          rest_drawn += drawn[id];
        } else {
          add(expected, drawn[id]);
        }
      }
      if (rest >= 10) add(rest, rest_drawn);
      EXPECT_LT(sum, cells + 6 * std::sqrt(2 * cells));
      EXPECT_GT(cells, 0);
    }
  }
}

// The token of a random number is the first, in the order of ids, whose probability and those before it exceed it. The
// numbers are those of the C++ standard's generator.
TEST(Sampler, EachNumberOfTheSeedGivesItsToken) {
  const std::vector<float> logits = many_logits(200, 2);
  for (SamplingOptions options : kWaysToSample) {
    options.seed = 77;
    const std::vector<long double> probabilities = expected_probabilities(options, logits);
    std::mt19937_64 random(77);
    Sampler sampler(options);
    for (int i = 0; i < 200; ++i) {
      long double place = static_cast<long double>(random() >> 11) * 0x1p-53L;
      std::size_t id = 0;
      while (id + 1 < logits.size() && place >= probabilities[id]) place -= probabilities[id++];
      ASSERT_EQ(sampler.sample(logits), static_cast<TokenId>(id)) << "draw " << i;
    }
  }
}

TEST(Sampler, DrawsTheFirstTokenWhereNoneHasAProbability) {
  for (SamplingOptions options : kWaysToSample)
    EXPECT_EQ(Sampler(options).sample(std::vector<float>(50, -kInfinity)), 0);
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
  // The first of the two best has 4/7 of their probability.
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
