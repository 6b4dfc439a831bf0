// Sampler: picks the next token from a model's scores.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <poise/tokenizer.hpp>

namespace poise {

struct SamplingOptions {
  float temperature = 0;   // 0: always the best token
  std::int64_t top_k = 0;  // among the k best only; 0: all
  float top_p = 1;         // among the fewest that together have this probability
  std::uint64_t seed = 0;
};

// The same options and scores give the same tokens on every machine.
class Sampler {
 public:
  // Throws bad_argument for options that make no sense.
  explicit Sampler(const SamplingOptions& options = {});

  // A token id: an index into `logits`. Of equal scores the lower id goes first. Throws unsupported, naming the token,
  // when a score is NaN or infinitely large. Requires: logits is not empty.
  TokenId sample(std::span<const float> logits);

 private:
  struct Candidate {
    TokenId token;
    float logit;
    double weight;  // exp((logit - best) / temperature)
  };
  void choose_candidates(std::span<const float> logits);
  double uniform();  // in [0, 1)

  SamplingOptions options_;
  std::mt19937_64 random_;
  std::vector<Candidate> candidates_;
};

}  // namespace poise
