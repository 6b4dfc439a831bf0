// Sampler: picks the next token from a model's scores.
//
// First the scores change: logit_bias, repetition_penalty, then presence_penalty and frequency_penalty. At temperature
// 0 the best token is chosen. Otherwise scores are divided by the temperature, and top_k, top_p and min_p narrow the
// choice, in this order.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <poise/tokenizer.hpp>

namespace poise {

struct SamplingOptions {
  float temperature = 0;   // 0: always the best token
  std::int64_t top_k = 0;  // among the k best only; 0: all
  float top_p = 1;         // among the fewest that together have this probability
  std::uint64_t seed = 0;
  float min_p = 0;               // among those with at least this share of the best one's probability
  float repetition_penalty = 1;  // divides scores above 0, and multiplies those below, of tokens in the text
  float presence_penalty = 0;    // subtracted from the scores of generated tokens,
  float frequency_penalty = 0;   // and this for each of their occurrences
  std::vector<std::pair<TokenId, float>> logit_bias = {};  // added to the scores of these tokens
};

// Holds the natural logarithm of a token's probability.
struct TokenLogProbability {
  TokenId token = -1;
  double log_probability = 0;
};
// Returns the best `count` of them for a model's scores, without sampling options; of equal ones the lower id first.
std::vector<TokenLogProbability> top_log_probabilities(std::span<const float> logits, std::size_t count);
// Returns the log probability of one token. Requires: the scores have it.
double log_probability(std::span<const float> logits, TokenId token);

// Holds a guess: the token that a sampler may choose.
struct Guess {
  TokenId token = -1;
  // The tokens that it was drawn from, with their probabilities; empty: it was not drawn.
  std::vector<std::pair<TokenId, double>> drawn_from = {};
};

// Chooses tokens by their scores. The same options and scores give the same tokens on every machine. A token is drawn
// with its probability, exactly but for the rounding of float64 sums.
class Sampler {
 public:
  // Throws bad_argument for invalid options.
  explicit Sampler(const SamplingOptions& options = {});

  // Adds tokens of the text before the sampled ones, for repetition_penalty.
  void see(std::span<const TokenId> tokens);

  // Returns a token id: an index into `logits`. Of equal scores the lower id goes first. Throws unsupported, naming the
  // token, when a score is NaN or infinitely large. Requires: logits is not empty.
  TokenId sample(std::span<const float> logits);

  // Draws a guess from the scores of a draft, with the same options. It does not count as a token of the text. Throws
  // what sample() throws.
  Guess guess(std::span<const float> logits);
  // Does sample() with a guess: each token has the same probability as without, and is the guess as often as that
  // allows (rejection sampling). A guess that no draft has drawn does not change which random numbers are used.
  // Requires: a guess that was drawn has a random stream of its own.
  TokenId sample(std::span<const float> logits, const Guess& guess);
  // Returns a sampler in the same state that draws other random numbers: takes its seed from this one's.
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
  void leave_out_after(const Candidate& last);
  static double sum_of_weights(std::span<const Candidate> candidates);
  double total_weight() const;
  TokenId draw(double total);  // one of the candidates
  TokenId choose(std::span<const float> logits);
  TokenId choose(std::span<const float> logits, const Guess& guess);
  void count(TokenId token);
  double uniform();  // in [0, 1)

  SamplingOptions options_;
  std::mt19937_64 random_;
  std::vector<Candidate> candidates_;
  std::vector<Candidate> ranked_;  // a copy to select from, in any order
  std::vector<float> adjusted_;
  std::vector<bool> seen_;                // by id: in the text, or generated
  std::vector<std::uint32_t> generated_;  // by id: number of occurrences
};

}  // namespace poise
