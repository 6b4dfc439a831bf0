#include <poise/embedder.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "runtime/computation.hpp"
#include "tokenizer/tokens/merge.hpp"

namespace poise {
namespace {

// Holds a text whose hidden states are being computed.
struct PooledText {
  std::size_t number;  // the index among all texts
  std::span<const TokenId> left;
  Sequence sequence;
  std::vector<double> pooled;  // the sum of its hidden states so far, or the last one
};

}  // namespace

class Embedder::State : public Computation {
 public:
  State(std::shared_ptr<const Weights> weights, const EmbedOptions& options, const SessionOptions& session)
      : Computation(std::move(weights), session), options_(options) {
    if (options.layer) require_layer(*weights_, *options.layer);
    memory_.kept_layer = options.layer.value_or(transformer_.layers());
  }

  std::size_t size() const { return transformer_.hidden_size(); }

  std::vector<float> embed(std::span<const std::vector<TokenId>> texts, const Progress& progress,
                           const std::stop_token& stop) {
    std::size_t total = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      check_text(texts[i], i);
      total += texts[i].size();
    }
    std::vector<float> out(texts.size() * size());
    std::vector<PooledText> running;
    std::size_t begun = 0;
    std::size_t done = 0;
    while (done < total) {
      const std::vector<std::size_t> counts = fill_batch(texts, begun, running);
      compute_batch(running, counts, stop);
      for (const std::size_t count : counts) done += count;
      for (const PooledText& text : running) {
        if (text.left.empty()) write_vector(text, texts[text.number].size(), out.data() + text.number * size());
      }
      std::erase_if(running, [](const PooledText& text) { return text.left.empty(); });
      if (progress && !progress({done, total, "tokens"})) throw_cancelled();
    }
    return out;
  }

 private:
  void check_text(const std::vector<TokenId>& text, std::size_t number) const {
    const auto fail = [&](const std::string& problem) {
      throw Error(ErrorKind::bad_argument, fmt::format("text {}: {}", number + 1, problem));
    };
    for (const TokenId token : text) require_token(*weights_, "token", token);
    if (text.empty()) fail("it has no tokens, so it has no vector");
    if (text.size() > context_)
      fail(fmt::format("{} tokens do not fit the context of {} tokens", text.size(), context_));
  }

  // Begins texts while the next batch has room. Returns how many tokens the batch has of each of the first running
  // texts; the others wait.
  std::vector<std::size_t> fill_batch(std::span<const std::vector<TokenId>> texts, std::size_t& begun,
                                      std::vector<PooledText>& running) const {
    std::vector<std::size_t> counts;
    std::size_t room = Transformer::kMaxBatch;
    for (std::size_t i = 0; room > 0; ++i) {
      if (i == running.size()) {
        if (begun == texts.size()) break;
        running.push_back(begin_text(texts[begun], begun));
        ++begun;
      }
      counts.push_back(std::min(room, running[i].left.size()));
      room -= counts.back();
    }
    return counts;
  }

  PooledText begin_text(std::span<const TokenId> tokens, std::size_t number) const {
    PooledText text = {number, tokens, begin_sequence(tokens.size()), std::vector<double>(size())};
    text.sequence.is_long = transformer_.is_long(tokens.size());
    return text;
  }

  void compute_batch(std::vector<PooledText>& running, const std::vector<std::size_t>& counts,
                     const std::stop_token& stop) {
    std::vector<SequenceTokens> batch;
    for (std::size_t i = 0; i < counts.size(); ++i)
      batch.push_back({&running[i].sequence, running[i].left.first(counts[i])});
    threads_.run(stop, [&] { transformer_.forward(batch, memory_); });
    const float* state = memory_.kept.data();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      running[i].left = running[i].left.subspan(counts[i]);
      for (std::size_t t = 0; t < counts[i]; ++t, state += size()) add_to_pooled(state, running[i].pooled);
    }
  }

  void add_to_pooled(const float* state, std::vector<double>& pooled) const {
    for (std::size_t i = 0; i < size(); ++i) {
      const auto number = static_cast<double>(state[i]);
      pooled[i] = options_.pooling == Pooling::mean ? pooled[i] + number : number;
    }
  }

  void write_vector(const PooledText& text, std::size_t tokens, float* out) const {
    double divisor = options_.pooling == Pooling::mean ? static_cast<double>(tokens) : 1;
    if (options_.normalize) {
      double squares = 0;
      for (const double x : text.pooled) squares += x * x;
      if (squares > 0) divisor = std::sqrt(squares);
    }
    for (std::size_t i = 0; i < size(); ++i) {
      out[i] = static_cast<float>(text.pooled[i] / divisor);
      if (!std::isfinite(out[i]))
        refuse_non_finite(fmt::format("number {} of the vector of text {}", i, text.number + 1),
                          static_cast<double>(out[i]));
    }
  }

  EmbedOptions options_;
};

Embedder::Embedder(std::shared_ptr<const Weights> weights, const EmbedOptions& options, const SessionOptions& session) {
  state_ = std::make_unique<State>(
      require_weights(std::move(weights), "an embedder needs weights, found a null pointer"), options, session);
}
Embedder::~Embedder() = default;
Embedder::Embedder(Embedder&&) noexcept = default;
Embedder& Embedder::operator=(Embedder&&) noexcept = default;

std::size_t Embedder::size() const { return state_->size(); }

std::vector<float> Embedder::embed(std::span<const std::string> texts, const Progress& progress,
                                   const std::stop_token& stop) {
  std::vector<std::vector<TokenId>> tokens;
  const EncodingStop stoppable(stop);
  for (const std::string& text : texts) tokens.push_back(state_->weights().tokenizer().encode_with_special(text));
  return state_->embed(tokens, progress, stop);
}

std::vector<float> Embedder::embed(std::span<const std::vector<TokenId>> texts, const Progress& progress,
                                   const std::stop_token& stop) {
  return state_->embed(texts, progress, stop);
}

}  // namespace poise
