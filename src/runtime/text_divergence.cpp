#include "runtime/text_divergence.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <tbb/parallel_for.h>

#include "runtime/computation.hpp"

namespace poise {
namespace {

// Computes all texts in one pass.
class Pass : public Computation {
 public:
  explicit Pass(std::shared_ptr<const Weights> weights) : Computation(std::move(weights), SessionOptions()) {
    require_output_matrix(*weights_);
  }

  // Calls use(scores, rows) for all predicted tokens, in order, at most Transformer::kScoreRows at a time. `scores` is
  // [rows, vocabulary].
  template <typename Use>
  void compute(const TextDivergence::Texts& texts, const Use& use) {
    std::vector<Sequence> sequences;
    std::vector<std::size_t> rows;  // each predicts the token after it
    std::size_t first = 0;
    for (const std::vector<TokenId>& text : texts) {
      require_fitting_tokens(text);
      sequences.push_back(begin_sequence(text.size()));
      sequences.back().is_long = transformer_.is_long(text.size());
      for (std::size_t i = 0; i + 1 < text.size(); ++i) rows.push_back(first + i);
      first += text.size();
    }
    std::vector<SequenceTokens> batch;
    for (std::size_t i = 0; i < texts.size(); ++i) batch.push_back({&sequences[i], texts[i]});
    threads_.run({}, [&] { transformer_.forward(batch, memory_); });
    std::vector<float> scores;
    for (std::size_t at = 0, count = 0; at < rows.size(); at += count) {
      count = Transformer::count_next_tokens(rows.size() - at, Transformer::kScoreRows);
      scores.resize(count * transformer_.vocabulary_size());
      threads_.run({}, [&] {
        transformer_.compute_logits(std::span(rows).subspan(at, count), memory_, scores.data());
        use(std::span<const float>(scores), count);
      });
    }
  }
};

}  // namespace

double compute_divergence(std::span<const float> p, double p_sum, std::span<const float> q, double q_sum) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double of_p = static_cast<double>(p[i]) - p_sum;
    const double share = std::exp(of_p);
    if (share > 0) sum += share * (of_p - (static_cast<double>(q[i]) - q_sum));
  }
  return std::max(sum, 0.0);  // rounding may make it less than 0
}

TextDivergence::TextDivergence(std::shared_ptr<const Weights> base, Texts texts) : texts_(std::move(texts)) {
  Pass(std::move(base)).compute(texts_, [&](std::span<const float> scores, std::size_t rows) {
    scores_.insert(scores_.end(), scores.begin(), scores.end());
    const std::size_t width = scores.size() / rows;
    for (std::size_t i = 0; i < rows; ++i) {
      sums_.push_back(compute_log_sum_exp(scores.subspan(i * width, width)));
      if (!std::isfinite(sums_.back())) refuse_non_finite("a score of the model on the text", sums_.back());
    }
  });
}

double TextDivergence::compute(std::shared_ptr<const Weights> model) const {
  std::vector<double> divergences(sums_.size());
  std::size_t first = 0;
  Pass(std::move(model)).compute(texts_, [&](std::span<const float> scores, std::size_t rows) {
    const std::size_t width = scores.size() / rows;
    tbb::parallel_for(std::size_t{0}, rows, [&](std::size_t i) {
      const std::span<const float> row = scores.subspan(i * width, width);
      const double sum = compute_log_sum_exp(row);
      const std::span<const float> of_base = std::span(scores_).subspan((first + i) * width, width);
      // compute_divergence() requires finite sums.
      divergences[first + i] = std::isfinite(sum) ? compute_divergence(of_base, sums_[first + i], row, sum) : sum;
    });
    first += rows;
  });
  double total = 0;
  for (const double divergence : divergences) {
    if (!std::isfinite(divergence)) refuse_non_finite("the divergence of a changed model on the text", divergence);
    total += divergence;
  }
  return total / static_cast<double>(divergences.size());
}

}  // namespace poise
