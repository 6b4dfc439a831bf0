// Expected numbers come from the forward pass in float64 of random_model.hpp.
#include <poise/embedder.hpp>

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/reference.hpp"
#include "runtime/transformer.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using ::testing::HasSubstr;

using Vector = Reference::Vector;

// Returns a text longer than one computation, many short ones, which share one, and one that begins in one computation
// and ends in the next.
std::vector<std::vector<TokenId>> some_texts() {
  std::mt19937 random(3);
  std::vector<std::vector<TokenId>> texts;
  for (const std::size_t size : {5U, 301U, 1U, 2U, 200U, 7U, 60U, 1U}) {
    for (std::size_t i = 0; i < size; ++i) {
      if (i == 0) texts.emplace_back();
      texts.back().push_back(static_cast<TokenId>(random() % 37));
    }
  }
  return texts;
}

Vector pooled(const std::vector<Vector>& states, Pooling pooling) {
  if (pooling == Pooling::last) return states.back();
  Vector mean(states.front().size());
  for (const Vector& state : states) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += state[i] / static_cast<double>(states.size());
  }
  return mean;
}

Vector of_length_one(Vector vector) {
  double squares = 0;
  for (const double x : vector) squares += x * x;
  for (double& x : vector) x /= std::sqrt(squares);
  return vector;
}

TEST(Embedder, PoolsTheHiddenStatesOfTheReference) {
  const Config config = long_config();
  const NamedNumbers numbers = random_weights(config);
  const auto weights = load_weights(make_model(config, numbers));
  const auto texts = some_texts();
  std::vector<std::vector<std::vector<Vector>>> states;
  for (const auto& text : texts) states.push_back(Reference(config, numbers).hidden_states(text));
  for (const EmbedOptions& options :
       {EmbedOptions{}, EmbedOptions{.pooling = Pooling::mean}, EmbedOptions{.pooling = Pooling::mean, .layer = 1},
        EmbedOptions{.layer = 0}, EmbedOptions{.pooling = Pooling::mean, .normalize = true},
        EmbedOptions{.normalize = true}}) {
    Embedder embedder(weights, options, {.threads = 2, .exact = true});
    ASSERT_EQ(embedder.size(), 24U);
    const std::vector<float> all = embedder.embed(texts);
    ASSERT_EQ(all.size(), texts.size() * 24);
    for (std::size_t t = 0; t < texts.size(); ++t) {
      Vector expected = pooled(states[t][options.layer.value_or(3)], options.pooling);
      if (options.normalize) expected = of_length_one(std::move(expected));
      for (std::size_t i = 0; i < 24; ++i)
        ASSERT_NEAR(static_cast<double>(all[t * 24 + i]), expected[i], 1e-4) << "text " << t << ", number " << i;
      const std::vector<float> alone = embedder.embed(std::span(texts).subspan(t, 1));
      ASSERT_EQ(alone, std::vector(all.begin() + static_cast<std::ptrdiff_t>(t * 24),
                                   all.begin() + static_cast<std::ptrdiff_t>(t * 24 + 24)))
          << "text " << t;
    }
  }
}

TEST(Embedder, EncodesTextsWithSpecialTokens) {
  Model model = make_model(long_config(), random_weights(long_config()));
  Vocabulary vocabulary;
  vocabulary.add_dummy_prefix = false;
  for (char c = '0'; c < '0' + 37; ++c) vocabulary.add(std::string(1, c), 0, TokenType::normal);
  vocabulary.bos_id = 36;
  model.vocabulary = vocabulary;
  Embedder embedder(load_weights(model));
  EXPECT_EQ(embedder.embed(std::vector<std::string>{"123", ""}),
            embedder.embed(std::vector<std::vector<TokenId>>{{36, 1, 2, 3}, {36}}));
  EXPECT_TRUE(embedder.embed(std::vector<std::string>{}).empty());
}

TEST(Embedder, RefusesWhatHasNoVector) {
  const auto weights = load_weights(make_model(long_config(), random_weights(long_config())));
  EXPECT_EQ(support::error_of([] { Embedder(nullptr); }).kind(), ErrorKind::bad_argument);
  EXPECT_THAT(support::message_of([&] { Embedder(weights, {.layer = 4}); }), HasSubstr("layer 4 is out of range"));
  Embedder embedder(weights, {}, {.context = 20});
  const auto message = [&](const std::vector<std::vector<TokenId>>& texts) {
    return support::message_of([&] { (void)embedder.embed(texts); });
  };
  EXPECT_THAT(message({{1}, {}}), HasSubstr("text 2: it has no tokens"));
  EXPECT_THAT(message({std::vector<TokenId>(21)}), HasSubstr("text 1: 21 tokens do not fit the context of 20 tokens"));
  EXPECT_THAT(message({{1, 37}}), HasSubstr("token 37 is out of range: the model has 37 tokens"));
  EXPECT_EQ(support::error_of([&] { (void)embedder.embed(std::vector<std::string>{"text"}); }).kind(),
            ErrorKind::unsupported);

  NamedNumbers broken = random_weights(long_config());
  broken.at("model.norm.weight")[3] = std::numeric_limits<float>::infinity();
  Embedder bad(load_weights(make_model(long_config(), broken)));
  EXPECT_THAT(support::message_of([&] { (void)bad.embed(std::vector<std::vector<TokenId>>{{1}}); }),
              HasSubstr("number 3 of the vector of text 1 is "));
}

TEST(Embedder, IsCancelledByProgressAndByRequest) {
  Embedder embedder(load_weights(make_model(long_config(), random_weights(long_config()))));
  const auto texts = some_texts();
  const std::vector<float> expected = embedder.embed(texts);
  std::vector<std::uint64_t> done;
  const auto once = [&](const ProgressEvent& event) {
    EXPECT_EQ(event.total, 577U);
    done.push_back(event.done);
    return false;
  };
  EXPECT_EQ(support::error_of([&] { (void)embedder.embed(texts, once); }).kind(), ErrorKind::cancelled);
  EXPECT_EQ(done, std::vector<std::uint64_t>{Transformer::kMaxBatch});
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(support::error_of([&] { (void)embedder.embed(texts, {}, source.get_token()); }).kind(),
            ErrorKind::cancelled);
  EXPECT_EQ(embedder.embed(texts), expected);
}

}  // namespace
}  // namespace poise
