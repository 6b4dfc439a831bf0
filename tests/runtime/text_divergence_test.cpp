// Expected numbers come from the forward pass in float64 of random_model.hpp, and from Perplexity.
#include "runtime/text_divergence.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/perplexity.hpp>

#include "runtime/reference.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

NamedNumbers change(NamedNumbers weights) {
  std::mt19937 random(9);
  for (float& weight : weights.at("lm_head.weight"))
    weight += 0.04F * (static_cast<float>(random() >> 8) / 8388608.0F - 1.0F);
  return weights;
}

std::vector<TokenId> make_tokens(std::size_t count) {
  std::mt19937 random(7);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 37);
  return tokens;
}

TEST(TextDivergence, IsThatOfTheReference) {
  const Config config = long_config();
  const NamedNumbers base = random_weights(config);
  const NamedNumbers changed = change(base);
  const std::vector<TokenId> tokens = make_tokens(70);
  const TextDivergence text(load_weights(make_model(config, base)), {tokens});
  EXPECT_EQ(text.count_predicted_tokens(), 69U);
  const auto p = Reference(config, base).logits(tokens);
  const auto q = Reference(config, changed).logits(tokens);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    double of_p = 0;
    double of_q = 0;
    for (std::size_t t = 0; t < p[i].size(); ++t) {
      of_p += std::exp(p[i][t]);
      of_q += std::exp(q[i][t]);
    }
    for (std::size_t t = 0; t < p[i].size(); ++t)
      sum += std::exp(p[i][t]) / of_p * (p[i][t] - std::log(of_p) - q[i][t] + std::log(of_q));
  }
  EXPECT_NEAR(text.compute(load_weights(make_model(config, changed))), sum / 69, 1e-2 * sum / 69);
  EXPECT_NEAR(text.compute(load_weights(make_model(config, base))), 0, 1e-12);
}

TEST(TextDivergence, IsThatOfPerplexity) {
  const Config config = long_config();
  const auto base = load_weights(make_model(config, random_weights(config)));
  const auto changed = load_weights(make_model(config, change(random_weights(config))));
  Perplexity perplexity(changed, base);
  TextDivergence::Texts texts;
  for (const std::size_t count : std::initializer_list<std::size_t>{2, 65, 1, 200, 244}) {
    texts.push_back(make_tokens(count));
    perplexity.add(texts.back());
  }
  const TextDivergence divergence(base, texts);
  EXPECT_EQ(divergence.count_predicted_tokens(), 507U);
  EXPECT_EQ(divergence.count_predicted_tokens(), perplexity.result().tokens);
  const double expected = perplexity.result().against->kl_mean.value;
  EXPECT_NEAR(divergence.compute(changed), expected, 1e-4 * expected);
}

TEST(TextDivergence, RefusesNumbersThatAreNotFinite) {
  const Config config = long_config();
  NamedNumbers broken = random_weights(config);
  broken.at("lm_head.weight").front() = std::numeric_limits<float>::quiet_NaN();
  const auto weights = load_weights(make_model(config, broken));
  EXPECT_THROW(TextDivergence(weights, {make_tokens(8)}), Error);
  const TextDivergence text(load_weights(make_model(config, random_weights(config))), {make_tokens(8)});
  EXPECT_THROW(text.compute(weights), Error);
}

}  // namespace
}  // namespace poise
