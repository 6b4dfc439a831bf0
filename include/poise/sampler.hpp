// Sampler: picks the next token from a model's scores.
//
// First the scores change: logit_bias, repetition_penalty, then presence_penalty and frequency_penalty. At temperature
// 0 the best token is chosen. Otherwise scores are divided by the temperature, and top_k, top_p and min_p narrow the
// choice, in this order.
//
//   poise::Sampler sampler({.temperature = 0.8F, .top_p = 0.95F});
//   const poise::TokenId token = session.sample(sampler);
//
// Only one thread at a time may use a Sampler.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <poise/tokenizer.hpp>

namespace poise {

struct SamplingOptions {
  float temperature = 0;         // 0: always the best token
  std::int64_t top_k = 0;        // chooses among the k best tokens; 0: among all
  float top_p = 1;               // chooses among the fewest tokens that together have this probability
  std::uint64_t seed = 0;        // the seed of the random numbers
  float min_p = 0;               // chooses among tokens with at least this share of the best one's probability
  float repetition_penalty = 1;  // divides positive scores of tokens in the text, and multiplies negative ones
  float presence_penalty = 0;    // subtracted from the score of each generated token
  float frequency_penalty = 0;   // subtracted for each occurrence of a generated token
  std::vector<std::pair<TokenId, float>> logit_bias = {};  // added to the scores of these tokens
};

// Holds the natural logarithm of a token's probability.
struct TokenLogProbability {
  TokenId token = -1;
  double log_probability = 0;
};
// Returns the `count` most probable tokens for a model's scores, the best first, without sampling options. Of equal
// ones the lower id comes first.
std::vector<TokenLogProbability> top_log_probabilities(std::span<const float> logits, std::size_t count);
// Returns the log probability of one token. Requires: the scores have it.
double log_probability(std::span<const float> logits, TokenId token);

// Holds a guess of the next token, for Sampler::sample() to accept or reject.
struct Guess {
  TokenId token = -1;
  // The tokens that it was drawn from, with their probabilities; empty: it was not drawn.
  std::vector<std::pair<TokenId, double>> drawn_from = {};
};

// Chooses tokens by their scores. The same options and scores give the same tokens on every machine. A token is drawn
// with its probability, up to the rounding of float64 sums.
class Sampler {
 public:
  // Throws bad_argument for invalid options.
  explicit Sampler(const SamplingOptions& options = {});

  // Adds tokens of the text before the sampled ones, for repetition_penalty.
  void see(std::span<const TokenId> tokens);

  // Returns a token id: an index into `logits`. Of equal scores the lower id goes first. Throws unsupported, naming the
  // token, when a score is NaN or infinitely large; bad_argument for a bias of a token without a score. Requires:
  // logits is not empty.
  TokenId sample(std::span<const float> logits);

  // Draws a guess from the scores of a draft, with the same options. The guess does not count as a token of the text.
  // Throws what sample() throws.
  Guess guess(std::span<const float> logits);
  // Samples with a guess. Each token has the same probability as without it, and the result is the guess as often as
  // this allows (rejection sampling). A guess that was not drawn does not change which random numbers are used.
  // Requires: a guess that was drawn came from another Sampler, such as branch().
  TokenId sample(std::span<const float> logits, const Guess& guess);
  // Returns a sampler in the same state that draws other random numbers. Its seed is this sampler's next random number.
  Sampler branch();

 private:
  struct Candidate {
    TokenId token;
    float logit;
    double weight;  // exp((logit - best) / temperature)
  };
  std::span<const float> adjust_scores(std::span<const float> logits);
  static bool is_better(const Candidate& a, const Candidate& b);
  void choose_candidates(std::span<const float> logits);
  void keep_nucleus();
  void remove_worse_than(const Candidate& last);
  static double sum_weights(std::span<const Candidate> candidates);
  double compute_total_weight() const;
  TokenId draw(double total);  // one of the candidates
  TokenId choose(std::span<const float> logits);
  TokenId choose(std::span<const float> logits, const Guess& guess);
  void count_token(TokenId token);
  double draw_uniform();  // returns a number in [0, 1)

  SamplingOptions options_;
  std::mt19937_64 random_;
  std::vector<Candidate> candidates_;
  std::vector<Candidate> ranked_;  // copies of candidates, which selecting the best ones reorders
  std::vector<float> adjusted_;
  std::vector<bool> seen_;                // whether a token, by its id, is in the text or has been generated
  std::vector<std::uint32_t> generated_;  // how often a token, by its id, has been generated
};

}  // namespace poise
