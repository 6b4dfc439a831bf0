// Expected numbers come from the forward pass in float64 of random_model.hpp, and from formulas as textbooks have them.
#include <poise/perplexity.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/reference.hpp"
#include "runtime/transformer.hpp"
#include "support/errors.hpp"
#include "tokenizer/pipeline/special_around.hpp"

namespace poise {
namespace {

using ::testing::HasSubstr;

using Vector = Reference::Vector;

NamedNumbers changed(NamedNumbers weights) {
  std::mt19937 random(9);
  for (float& weight : weights.at("lm_head.weight"))
    weight += 0.04F * (static_cast<float>(random() >> 8) / 8388608.0F - 1.0F);
  return weights;
}

std::vector<TokenId> random_text(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 37);
  return tokens;
}

// Returns a text longer than one computation, a shorter one, and one of a single token, which has no prediction. The
// first two leave one token more than whole blocks of scores.
std::vector<std::vector<TokenId>> some_texts() {
  return {random_text(Transformer::kMaxBatch + 66, 1), random_text(66, 2), random_text(2, 3), random_text(1, 4)};
}

Vector probabilities(const Vector& logits) {
  Vector result;
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (const double logit : logits) result.push_back(std::exp(logit) / sum);
  return result;
}

Estimate mean(const Vector& sample) {
  const auto n = static_cast<double>(sample.size());
  const double value = std::accumulate(sample.begin(), sample.end(), 0.0) / n;
  double squares = 0;
  for (const double x : sample) squares += (x - value) * (x - value);
  return {value, std::sqrt(squares / (n - 1) / n)};
}

void expect_near(const Estimate& actual, const Estimate& expected) {
  EXPECT_NEAR(actual.value, expected.value, 1e-4 * std::abs(expected.value));
  EXPECT_NEAR(actual.standard_error, expected.standard_error, 1e-3 * expected.standard_error);
}

void expect_exponential(const Estimate& actual, const Vector& sample) {
  const Estimate exponent = mean(sample);
  expect_near(actual, {std::exp(exponent.value), std::exp(exponent.value) * exponent.standard_error});
}

TEST(Perplexity, EqualsThatOfTheReference) {
  const Config config = long_config();
  const NamedNumbers base = random_weights(config);
  const NamedNumbers weights = changed(base);
  Perplexity perplexity(load_weights(make_model(config, weights)), load_weights(make_model(config, base)),
                        {.threads = 2, .exact = true});
  Vector losses, base_losses, differences, divergences, same;
  for (const std::vector<TokenId>& text : some_texts()) {
    perplexity.add(text);
    const auto scores = Reference(config, weights).logits(text);
    const auto base_scores = Reference(config, base).logits(text);
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      const Vector q = probabilities(scores[i]);
      const Vector p = probabilities(base_scores[i]);
      const auto next = static_cast<std::size_t>(text[i + 1]);
      losses.push_back(-std::log(q[next]));
      base_losses.push_back(-std::log(p[next]));
      differences.push_back(losses.back() - base_losses.back());
      divergences.push_back(0);
      for (std::size_t t = 0; t < p.size(); ++t) divergences.back() += p[t] * std::log(p[t] / q[t]);
      same.push_back(std::ranges::max_element(p) - p.begin() == std::ranges::max_element(q) - q.begin() ? 1 : 0);
    }
  }
  const PerplexityResult result = perplexity.result();
  EXPECT_EQ(result.texts, 4U);
  EXPECT_EQ(result.tokens, losses.size());
  expect_exponential(result.perplexity, losses);
  ASSERT_TRUE(result.against);
  expect_exponential(result.against->base_perplexity, base_losses);
  expect_exponential(result.against->ratio, differences);
  expect_near(result.against->kl_mean, mean(divergences));
  EXPECT_NEAR(result.against->kl_max, std::ranges::max(divergences), 1e-3 * std::ranges::max(divergences));
  expect_near(result.against->same_top, mean(same));
  EXPECT_LT(result.against->same_top.value, 1);

  Perplexity alone(load_weights(make_model(config, weights)), nullptr, {.exact = true});
  for (const std::vector<TokenId>& text : some_texts()) alone.add(text);
  EXPECT_FALSE(alone.result().against);
  EXPECT_DOUBLE_EQ(alone.result().perplexity.value, result.perplexity.value);
}

// Counts by windows, written out: as in llama-perplexity's loop (tools/perplexity/perplexity.cpp of llama.cpp v0.5.0),
// and as in the loop of transformers' "Perplexity of fixed-length models", whose labels are shifted by one.
TEST(Perplexity, OfWindows) {
  Config config = long_config();
  config.max_position_embeddings = 600;
  const NamedNumbers weights = random_weights(config);
  const auto loaded = load_weights(make_model(config, weights));
  const std::vector<TokenId> document = random_text(1337, 5);
  const auto n = document.size();
  const auto losses_of = [&](std::size_t begin, std::size_t end, std::size_t first, Vector& losses) {
    const std::vector<TokenId> window(document.begin() + static_cast<std::ptrdiff_t>(begin),
                                      document.begin() + static_cast<std::ptrdiff_t>(end));
    const auto scores = Reference(config, weights).logits(window);
    for (std::size_t i = first; i < window.size(); ++i)
      losses.push_back(-std::log(probabilities(scores[i - 1])[static_cast<std::size_t>(window[i])]));
  };
  for (const std::size_t size : {600U, 65U, 4U}) {
    SCOPED_TRACE(size);
    Vector losses;
    for (std::size_t i = 0; i < n / size; ++i) losses_of(i * size, (i + 1) * size, size / 2 + 1, losses);
    Perplexity perplexity(loaded, loaded, {.exact = true});
    perplexity.add_windows(document, {.size = size});
    const PerplexityResult result = perplexity.result();
    EXPECT_EQ(result.windows, n / size);
    EXPECT_EQ(result.texts, 1U);
    EXPECT_EQ(result.tokens, n / size * (size - 1 - size / 2));
    expect_exponential(result.perplexity, losses);
    EXPECT_EQ(result.against->ratio.value, 1);
  }
  for (const auto& [size, stride] : {std::pair{600U, 300U}, {65U, 65U}, {66U, 7U}, {600U, 599U}}) {
    SCOPED_TRACE(fmt::format("{}, {}", size, stride));
    Vector losses;
    std::size_t windows = 0;
    std::size_t previous_end = 0;
    for (std::size_t begin = 0; begin < n; begin += stride) {
      const std::size_t end = std::min<std::size_t>(begin + size, n);
      const std::size_t targets = end - previous_end;
      losses_of(begin, end, std::max<std::size_t>(end - begin - targets, 1), losses);
      previous_end = end;
      ++windows;
      if (end == n) break;
    }
    Perplexity perplexity(loaded, nullptr, {.exact = true});
    perplexity.add_windows(document, {.size = size, .stride = stride});
    EXPECT_EQ(perplexity.result().windows, windows);
    EXPECT_EQ(perplexity.result().tokens, losses.size());
    expect_exponential(perplexity.result().perplexity, losses);
  }
}

TEST(Perplexity, RefusesWindowsThatMakeNoSense) {
  const auto weights = load_weights(make_model(small_config(), random_weights(small_config())));
  Perplexity perplexity(weights);
  const auto problem = [&](const PerplexityWindows& windows, std::size_t tokens = 400) {
    const Error error = support::error_of([&] { perplexity.add_windows(random_text(tokens, 1), windows); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
    return error.message();
  };
  EXPECT_EQ(problem({.size = 301}), "windows of 301 tokens, expected 4 to 300, the context");
  EXPECT_EQ(problem({.size = 3}), "windows of 3 tokens, expected 4 to 300, the context");
  EXPECT_EQ(problem({.size = 8, .stride = 9}), "windows of 8 tokens every 9 tokens leave some out");
  EXPECT_EQ(problem({.size = 8}, 7), "the document has 7 tokens, fewer than a window of 8");
  EXPECT_EQ(problem({.size = 8, .stride = 4}, 1), "the document has no token to predict: it needs two tokens or more");
  EXPECT_THROW((void)perplexity.result(), Error) << "nothing was added";
  std::vector<TokenId> wrong = random_text(40, 1);
  wrong[30] = 37;
  EXPECT_THROW(perplexity.add_windows(wrong, {.size = 8}), Error);
  EXPECT_THROW((void)perplexity.result(), Error) << "nor the windows before a wrong one";
  std::vector<std::uint64_t> done;
  perplexity.add_windows(random_text(20, 1), {.size = 8, .stride = 6}, [&](const ProgressEvent& event) {
    EXPECT_EQ(event.total, 24U);
    done.push_back(event.done);
    return true;
  });
  EXPECT_THAT(done, ::testing::ElementsAre(8, 16, 24));
}

TEST(Perplexity, OfAModelAgainstItself) {
  const auto weights = load_weights(make_model(long_config(), random_weights(long_config())));
  Perplexity perplexity(weights, weights);
  perplexity.add(random_text(2, 1));
  EXPECT_TRUE(std::isnan(perplexity.result().perplexity.standard_error)) << "of one token";
  perplexity.add(random_text(100, 2));
  const PerplexityResult result = perplexity.result();
  EXPECT_EQ(result.against->ratio.value, 1);
  EXPECT_EQ(result.against->kl_max, 0);
  EXPECT_EQ(result.against->same_top.value, 1);
  EXPECT_EQ(result.against->same_top.standard_error, 0);
}

// Returns tokens of a character each: "0", "1", ...
Vocabulary vocabulary(std::size_t size, const std::string& last) {
  Vocabulary result;
  result.add_dummy_prefix = false;
  for (std::size_t id = 0; id + 1 < size; ++id)
    result.add(std::string(1, static_cast<char>('0' + id)), 0, TokenType::normal);
  result.add(last, 0, TokenType::normal);
  return result;
}

TEST(Perplexity, NamesHowVocabulariesDiffer) {
  const Config config = long_config();
  const auto with = [&](const Vocabulary& words) {
    Model model = make_model(config, random_weights(config));
    model.vocabulary = words;
    return load_weights(model);
  };
  const auto weights = with(vocabulary(37, "last"));
  EXPECT_EQ(support::message_of([&] { Perplexity(weights, with(vocabulary(37, "end"))); }),
            "the vocabularies differ: token 36 is \"last\", and \"end\" in the base");
  EXPECT_EQ(support::message_of([&] { Perplexity(weights, with(vocabulary(36, "S"))); }), "")
      << "one has names for padding";
  Config larger = config;
  larger.vocab_size = 40;
  EXPECT_EQ(support::message_of([&] { Perplexity(weights, load_weights(make_model(larger, random_weights(larger)))); }),
            "the vocabularies differ: the model has scores of 37 tokens, the base of 40");

  Vocabulary ended = vocabulary(37, "last");
  ended.eos_id = 2;
  Perplexity perplexity(weights, with(ended));
  EXPECT_EQ(support::message_of([&] { perplexity.add("15"); }),
            "text 1: token 2 is the end, and \"2\" (2) in the base, whose vocabulary splits texts in another way");
}

TEST(Perplexity, EndsATextOnce) {
  const Config config = long_config();
  const auto count = [&](bool adds_eos) {
    Model model = make_model(config, random_weights(config));
    model.vocabulary = vocabulary(37, "last");
    model.vocabulary->eos_id = 2;
    set_special_around(*model.vocabulary, false, adds_eos);
    Perplexity perplexity(load_weights(model));
    perplexity.add("154");
    return perplexity.result().tokens;
  };
  EXPECT_EQ(count(false), 3U);  // "5", "4" and EOS are predicted
  EXPECT_EQ(count(true), 3U);
}

TEST(Perplexity, RefusesWhatIsNotAText) {
  const Config config = long_config();
  const auto weights = load_weights(make_model(config, random_weights(config)));
  EXPECT_EQ(support::error_of([] { Perplexity(nullptr); }).kind(), ErrorKind::bad_argument);
  Perplexity perplexity(weights, nullptr, {.context = 20});
  EXPECT_EQ(support::error_of([&] { (void)perplexity.result(); }).kind(), ErrorKind::bad_argument);
  EXPECT_EQ(support::error_of([&] { perplexity.add("text"); }).kind(), ErrorKind::unsupported);
  EXPECT_THAT(support::message_of([&] { perplexity.add(random_text(21, 1)); }),
              HasSubstr("text 1: 21 tokens do not fit the context of 20 tokens"));
  EXPECT_THAT(support::message_of([&] {
                perplexity.add(std::vector<TokenId>{1, 37});
              }),
              HasSubstr("token 37 is out of range: the model has 37 tokens"));
  EXPECT_EQ(support::error_of([&] { (void)perplexity.result(); }).kind(), ErrorKind::bad_argument) << "none counts";
}

TEST(Perplexity, NamesScoresThatAreNotNumbers) {
  const Config config = long_config();
  const auto weights = load_weights(make_model(config, random_weights(config)));
  NamedNumbers broken = random_weights(config);
  broken.at("model.norm.weight")[3] = std::numeric_limits<float>::quiet_NaN();
  const auto bad = load_weights(make_model(config, broken));
  const std::vector<TokenId> text = random_text(9, 1);
  Perplexity perplexity(bad);
  EXPECT_THAT(support::message_of([&] { perplexity.add(text); }),
              HasSubstr("text 1: the logarithm of the probability of token 1, which is " + std::to_string(text[1]) +
                        ", is NaN"));
  Perplexity against(weights, bad);
  EXPECT_THAT(support::message_of([&] { against.add(text); }),
              HasSubstr("text 1: the base's logarithm of the probability of token 1"));
}

TEST(Perplexity, ATextThatIsCancelledIsLeftOut) {
  const Config config = long_config();
  const auto weights = load_weights(make_model(config, random_weights(config)));
  Perplexity perplexity(weights, weights);
  perplexity.add(random_text(40, 1));
  const double before = perplexity.result().perplexity.value;
  std::vector<std::uint64_t> done;
  const auto once = [&](const ProgressEvent& event) {
    done.push_back(event.done);
    return done.size() < 2;
  };
  const auto add = [&] { perplexity.add(random_text(Transformer::kMaxBatch + 50, 2), once); };
  EXPECT_EQ(support::error_of(add).kind(), ErrorKind::cancelled);
  EXPECT_EQ(done, (std::vector<std::uint64_t>{Transformer::kMaxBatch, Transformer::kMaxBatch + 50}));
  std::stop_source source;
  source.request_stop();
  EXPECT_EQ(support::error_of([&] { perplexity.add(random_text(40, 2), {}, source.get_token()); }).kind(),
            ErrorKind::cancelled);
  EXPECT_EQ(perplexity.result().perplexity.value, before);
  EXPECT_EQ(perplexity.result().texts, 1U);
}

}  // namespace
}  // namespace poise
