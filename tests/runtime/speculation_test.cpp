#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/batch.hpp>
#include <poise/error.hpp>
#include <poise/session.hpp>
#include <poise/values.hpp>

#include "runtime/random_model.hpp"
#include "runtime/speculation.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// Returns a configuration with rows of whole blocks, so that matrices can be codes.
Config wide_config() {
  Config config = small_config();
  config.hidden_size = 64;
  config.intermediate_size = 96;
  config.num_attention_heads = 4;
  config.head_dim = 16;
  return config;
}

std::shared_ptr<const Weights> weights_of(const Config& config, std::string_view type = "f32", std::uint32_t seed = 1) {
  return load_weights(make_model(
      config, random_weights(config, seed), [&](const std::string& name, const Shape& shape, const auto& values) {
        const Tensor tensor = float_tensor(name, shape, values);
        return type == "f32" || shape.size() == 1 ? tensor : quantized(tensor, *stored_type_from_name(type));
      }));
}

const std::vector<TokenId> kPrompt = {3, 1, 4, 1, 5, 9, 2, 6, 3, 1, 4};

std::vector<DraftOptions> drafts(const Config& config) {
  return {{}, {.most = 1}, {.most = 40}, {.model = weights_of(config, "f32", 2)}, {.model = weights_of(config)}};
}

// Expects the same text, and the same state of the session after it, with the options and without.
void expect_same(const std::shared_ptr<const Weights>& weights, const SessionOptions& options,
                 const GenerateOptions& generate) {
  SessionOptions plain = options;
  plain.draft.reset();
  Session expected(weights, plain);
  Session session(weights, options);
  for (int text = 0; text < 2; ++text) {  // the second begins where the first one's guesses were not used up
    for (Session* each : {&expected, &session}) each->feed(text == 0 ? kPrompt : std::vector<TokenId>{7});
    const Generation without = expected.generate(generate);
    const Generation with = session.generate(generate);
    EXPECT_THAT(with.tokens, ElementsAreArray(without.tokens));
    EXPECT_EQ(with.reason, without.reason);
    EXPECT_THAT(session.tokens(), ElementsAreArray(expected.tokens()));
    EXPECT_THAT(session.logits(), ElementsAreArray(expected.logits()));
    EXPECT_THAT(session.hidden_state(), ElementsAreArray(expected.hidden_state()));
    EXPECT_EQ(session.pending(), expected.pending());
  }
}

TEST(Speculation, GivesTheSameGreedyText) {
  for (const std::string_view type : {"f32", "q8_0", "q4_0"}) {
    for (const std::int64_t window : {0, 5, 100}) {
      Config config = wide_config();
      config.sliding_window = window;
      const auto weights = weights_of(config, type);
      for (const DraftOptions& draft : drafts(config)) {
        SCOPED_TRACE(fmt::format("{}, window {}, {} {}", type, window, draft.most, draft.model != nullptr));
        expect_same(weights, {.draft = draft}, {.max_tokens = 90});
        expect_same(weights, {.exact = true, .draft = draft}, {.max_tokens = 30});
      }
    }
  }
}

TEST(Speculation, EndsWhereTheTextEnds) {
  const Config config = wide_config();
  const auto weights = weights_of(config);
  Session plain(weights);
  plain.feed(kPrompt);
  const TokenId last = plain.generate({.max_tokens = 60}).tokens.back();
  for (const DraftOptions& draft : drafts(config)) {
    expect_same(weights, {.draft = draft}, {.max_tokens = 50, .stop_id = last});
    expect_same(weights, {.draft = draft}, {.max_tokens = 50, .sampling = {.frequency_penalty = 0.5F}});
    expect_same(weights, {.cache = CacheType::q8, .draft = draft}, {.max_tokens = 50});
    SessionOptions options = {.context = 40, .draft = draft};
    Session session(weights, options);
    session.feed(kPrompt);
    const Generation full = session.generate({.max_tokens = 90});
    EXPECT_EQ(full.reason, StopReason::context_full);
    EXPECT_EQ(session.position(), 40U);
  }
}

TEST(Speculation, ALookupLeavesTheRandomNumbersAsTheyAre) {
  const auto weights = weights_of(wide_config());
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    expect_same(weights, {.draft = DraftOptions()},
                {.max_tokens = 60, .sampling = {.temperature = 0.3F, .seed = seed}});
}

TEST(Speculation, ShowsCallbacksTheSessionWithoutTokensAhead) {
  const auto weights = weights_of(wide_config());
  Session plain(weights);
  Session session(weights, {.draft = DraftOptions{.model = weights_of(wide_config())}});
  plain.feed(kPrompt);
  session.feed(kPrompt);
  std::size_t count = 0;
  session.generate({.max_tokens = 30}, [&](TokenId token) {
    EXPECT_EQ(token, plain.generate({.max_tokens = 1}).tokens.front());
    EXPECT_EQ(session.position(), kPrompt.size() + count);
    EXPECT_THAT(session.logits(), ElementsAreArray(plain.logits()));
    Session fork = session.fork();
    EXPECT_THAT(fork.logits(), ElementsAreArray(plain.logits()));
    plain.feed(std::array{token});
    fork.feed(std::array{token});
    EXPECT_THAT(fork.logits(), ElementsAreArray(plain.logits()));
    return ++count < 20;
  });
  EXPECT_EQ(count, 20U);
  EXPECT_EQ(session.position(), kPrompt.size() + 19);
  EXPECT_GT(session.draft_counts().right, 10U);
  EXPECT_GE(session.draft_counts().guessed, session.draft_counts().right);
}

// Returns Pearson's statistic. Cells that expect fewer than five are joined to one.
double chi_square(const std::vector<double>& probabilities, const std::vector<std::size_t>& counts, std::size_t draws,
                  std::size_t& freedom) {
  double sum = 0;
  double rare = 0;
  double rare_count = 0;
  freedom = 0;
  const auto add = [&](double expected, double found) {
    sum += (found - expected) * (found - expected) / expected;
    ++freedom;
  };
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const double expected = probabilities[i] * static_cast<double>(draws);
    if (expected >= 5) {
      add(expected, static_cast<double>(counts[i]));
    } else {
      rare += expected;
      rare_count += static_cast<double>(counts[i]);
    }
  }
  if (rare > 0) add(rare, rare_count);
  --freedom;
  return sum;
}

// Returns the value that one of ten thousand exceeds, by Wilson and Hilferty's approximation.
double one_of_ten_thousand(std::size_t freedom) {
  const double k = static_cast<double>(freedom);
  const double root = 1 - 2 / (9 * k) + 3.719 * std::sqrt(2 / (9 * k));
  return k * root * root * root;
}

std::vector<double> probabilities_of(std::span<const float> logits) {
  std::vector<double> result;
  for (std::size_t id = 0; id < logits.size(); ++id)
    result.push_back(std::exp(log_probability(logits, static_cast<TokenId>(id))));
  return result;
}

TEST(Speculation, SamplesWithTheSameProbabilities) {
  const Config config = small_config();
  const auto weights = weights_of(config);
  Session session(weights, {.threads = 1, .draft = DraftOptions{.model = weights_of(config, "f32", 2), .most = 3}});
  Session plain(weights, {.threads = 1});
  plain.feed(kPrompt);
  // The second token is sampled by way of the draft's first guess.
  const std::vector<double> first = probabilities_of(plain.logits());
  std::vector<double> expected(first.size());
  for (std::size_t id = 0; id < first.size(); ++id) {
    Session fork = plain.fork();
    fork.feed(std::array{static_cast<TokenId>(id)});
    const std::vector<double> second = probabilities_of(fork.logits());
    for (std::size_t next = 0; next < second.size(); ++next) expected[next] += first[id] * second[next];
  }
  constexpr std::size_t kDraws = 6000;
  std::vector<std::size_t> counts(expected.size());
  std::size_t right = 0;
  session.feed(kPrompt);
  for (std::size_t seed = 0; seed < kDraws; ++seed) {
    Session fork = session.fork();
    const auto tokens = fork.generate({.max_tokens = 3, .sampling = {.temperature = 1, .seed = seed}}).tokens;
    ++counts[static_cast<std::size_t>(tokens[1])];
    right += fork.draft_counts().right;
  }
  std::size_t freedom = 0;
  const double found = chi_square(expected, counts, kDraws, freedom);
  EXPECT_LT(found, one_of_ten_thousand(freedom));
  EXPECT_GT(freedom, 10U);
  EXPECT_GT(right, kDraws / 10);
  EXPECT_LT(right, kDraws);
}

TEST(Speculation, AGuessChangesNoProbability) {
  const std::vector<float> scores = {0.1F, 1.3F, -0.5F, 2.0F, 0.7F, -3.0F};
  const std::vector<float> draft = {1.5F, 0.2F, 0.3F, 1.0F, -1.0F, 1.0F};
  const std::vector<SamplingOptions> all = {{.temperature = 1, .seed = 1},
                                            {.temperature = 0.7F, .top_k = 3, .seed = 2}};
  for (const SamplingOptions& options : all) {
    constexpr std::size_t kDraws = 40000;
    std::vector<std::size_t> counts(scores.size());
    std::size_t same = 0;
    Sampler sampler(options);
    Sampler guesser = sampler.branch();
    for (std::size_t i = 0; i < kDraws; ++i) {
      const Guess guess = guesser.guess(draft);
      const TokenId token = sampler.sample(scores, guess);
      ++counts[static_cast<std::size_t>(token)];
      if (token == guess.token) ++same;
    }
    // By hand: exp(score / temperature) of the best three, or of all.
    std::vector<double> expected(scores.size());
    std::vector<double> drawn(scores.size());
    const auto fill = [&](const std::vector<float>& from, std::vector<double>& to) {
      std::vector<float> sorted = from;
      std::ranges::sort(sorted, std::greater());
      const float least = options.top_k == 0 ? -100.0F : sorted[2];
      double total = 0;
      for (std::size_t id = 0; id < from.size(); ++id) {
        if (from[id] >= least) total += to[id] = std::exp(static_cast<double>(from[id] / options.temperature));
      }
      for (double& probability : to) probability /= total;
    };
    fill(scores, expected);
    fill(draft, drawn);
    double overlap = 0;
    for (std::size_t id = 0; id < expected.size(); ++id) overlap += std::min(expected[id], drawn[id]);
    std::size_t freedom = 0;
    const double found = chi_square(expected, counts, kDraws, freedom);
    EXPECT_LT(found, one_of_ten_thousand(freedom));
    EXPECT_NEAR(static_cast<double>(same) / kDraws, overlap, 0.01) << "as often as that allows";
  }
}

TEST(Speculation, LooksUpTheLongestRunThatCameBefore) {
  const auto draft = make_lookup_draft();
  Sampler sampler;
  const auto guessed = [&](const std::vector<TokenId>& tokens, std::size_t most) {
    std::vector<TokenId> result;
    for (const Guess& guess : draft->guess(tokens, most, sampler)) result.push_back(guess.token);
    return result;
  };
  EXPECT_THAT(guessed({}, 4), ElementsAre());
  EXPECT_THAT(guessed({1, 2, 3, 4}, 4), ElementsAre());
  EXPECT_THAT(guessed({1, 2, 3, 4, 1, 2}, 2), ElementsAre(3, 4));
  EXPECT_THAT(guessed({1, 2, 3, 4, 1, 2}, 7), ElementsAre(3, 4, 1, 2, 3, 4, 1)) << "beyond the end it goes on";
  EXPECT_THAT(guessed({9, 1, 2, 5, 8, 1, 2, 6, 9, 1, 2}, 1), ElementsAre(5)) << "the longest";
  EXPECT_THAT(guessed({1, 2, 5, 1, 2, 6, 1, 2}, 1), ElementsAre(6)) << "the last of equals";
  EXPECT_THAT(guessed({4, 4, 4}, 3), ElementsAre(4, 4, 4));
}

TEST(Speculation, GuessesMoreAfterRightGuesses) {
  GuessPace pace(32);
  EXPECT_EQ(pace.choose_next_count(), 8U);
  pace.record_check(8, 8);
  EXPECT_EQ(pace.choose_next_count(), 16U);
  pace.record_check(16, 16);
  pace.record_check(32, 32);
  EXPECT_EQ(pace.choose_next_count(), 32U);
  pace.record_check(32, 3);
  EXPECT_EQ(pace.choose_next_count(), 0U);
  EXPECT_EQ(pace.choose_next_count(), 16U);
  pace.record_check(16, 0);
  EXPECT_THAT((std::vector{pace.choose_next_count(), pace.choose_next_count(), pace.choose_next_count()}),
              ElementsAre(0U, 0U, 8U))
      << "longer each time";
  EXPECT_EQ(GuessPace(2).choose_next_count(), 2U);
}

TEST(Speculation, RefusesDraftsThatDoNotFit) {
  Config config = small_config();
  const auto weights = weights_of(config);
  const auto message = [&](const DraftOptions& draft) {
    const Error error = support::error_of([&] { Session session(weights, {.draft = draft}); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
    return error.message();
  };
  config.vocab_size = 38;
  EXPECT_EQ(message({.model = weights_of(config)}),
            "the draft has another vocabulary than the model: 38 tokens, not 37");
  EXPECT_THAT(message({.most = 0}), HasSubstr("a draft of 0 tokens at a time, expected 1 to 64"));
  EXPECT_THAT(message({.most = 65}), HasSubstr("a draft of 65 tokens"));
  EXPECT_THAT(support::error_of([&] { BatchGenerator batch(weights, {.draft = DraftOptions()}); }).message(),
              HasSubstr("cannot use a draft"));
}

TEST(Speculation, AShorterDraftStopsGuessing) {
  const Config config = wide_config();
  Config shorter = config;
  shorter.max_position_embeddings = 20;
  expect_same(weights_of(config), {.draft = DraftOptions{.model = weights_of(shorter)}}, {.max_tokens = 60});
}

}  // namespace
}  // namespace poise
