#include <poise/session.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "runtime/cancelled.hpp"
#include "runtime/session_threads.hpp"
#include "runtime/stop_texts.hpp"
#include "runtime/text_end.hpp"
#include "runtime/weights.hpp"

namespace poise {
namespace {

std::shared_ptr<const Weights> required(std::shared_ptr<const Weights> weights) {
  if (!weights) throw Error(ErrorKind::bad_argument, "a session needs weights");
  return weights;
}

}  // namespace

class Session::State {
 public:
  State(std::shared_ptr<const Weights> weights, const SessionOptions& options)
      : threads_(options.threads),
        context_(context_of(*weights, options)),
        weights_(std::move(weights)),
        transformer_(*weights_->parts().transformer),
        sequence_(transformer_.begin(context_)) {
    memory_.precision = options.exact ? Precision::exact : Precision::fast;
  }

  State(const State& other)
      : threads_(other.threads_),
        context_(other.context_),
        weights_(other.weights_),
        transformer_(other.transformer_),
        sequence_(other.sequence_),
        tokens_(other.tokens_),
        unfed_(other.unfed_),
        logits_(other.logits_) {
    memory_.precision = other.memory_.precision;
  }

  const Weights& weights() const { return *weights_; }
  std::size_t vocabulary_size() const { return transformer_.vocabulary_size(); }
  std::size_t context() const { return context_; }
  std::size_t position() const { return tokens_.size(); }
  std::span<const TokenId> tokens() const { return tokens_; }

  void reset() {
    sequence_.clear();
    tokens_.clear();
    logits_.clear();
    unfed_.reset();
  }

  void truncate(std::size_t position) {
    if (position > tokens_.size()) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("{} tokens are more than the {} that the session has", position, tokens_.size()));
    }
    if (position == tokens_.size()) return;
    const bool was_short = sequence_.is_long && position <= transformer_.recompute_after();
    const std::size_t computed = std::min(position, sequence_.position);
    if (was_short || !transformer_.truncate(computed, sequence_)) sequence_.clear();
    tokens_.resize(position);
    logits_.clear();
    unfed_.reset();
  }

  // Feeds tokens batch by batch; after each, calls `visit` with the index of its first token and their number.
  template <typename Visit>
  void feed(std::span<const TokenId> tokens, const std::stop_token& stop, const Progress& progress, Visit&& visit) {
    check(tokens);
    if (tokens.empty()) return;
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    if (const std::size_t most = transformer_.recompute_after();
        most != 0 && !sequence_.is_long && tokens_.size() > most) {
      sequence_.clear();
      sequence_.is_long = true;
      logits_.clear();
    }
    try {
      threads_.run(stop, [&] { compute(progress, visit); });
    } catch (...) {
      tokens_.resize(sequence_.position);
      if (sequence_.is_long && tokens_.size() <= transformer_.recompute_after()) sequence_.clear();
      if (logits_.empty()) unfed_.reset();  // otherwise none of these tokens were fed
      throw;
    }
    unfed_.reset();
  }

  TokenId choose(Sampler& sampler) { return *(unfed_ = sampler.sample(choices(*weights_, logits()))); }

  // Nothing before the first token.
  std::optional<TokenId> last_fed() const { return tokens_.empty() ? std::nullopt : std::optional(tokens_.back()); }
  // The last chosen token, until something is fed.
  std::optional<TokenId> unfed() const { return unfed_; }

  std::span<const float> logits() const {
    if (logits_.empty())
      throw Error(ErrorKind::bad_argument, "there are no scores before the first token has been fed");
    return logits_;
  }

  std::vector<double> log_probabilities(std::span<const TokenId> tokens, const std::stop_token& stop) {
    reset();
    std::vector<double> result;
    std::vector<float> rows;
    std::vector<std::size_t> places(Transformer::kMaxBatch);
    std::iota(places.begin(), places.end(), std::size_t{0});
    feed(tokens, stop, {}, [&](std::size_t first, std::size_t count) {
      const std::size_t size = vocabulary_size();
      rows.resize(count * size);
      transformer_.logits(std::span(places).first(count), memory_, rows.data());
      for (std::size_t i = 0; i < count && first + i + 1 < tokens.size(); ++i) {
        result.push_back(log_probability(std::span(rows).subspan(i * size, size), tokens[first + i + 1]));
      }
    });
    return result;
  }

 private:
  // Computes the tokens that the sequence does not have yet.
  template <typename Visit>
  void compute(const Progress& progress, Visit&& visit) {
    const std::span<const TokenId> tokens = tokens_;
    const std::size_t before = sequence_.position;
    std::size_t count = 0;
    for (std::size_t first = before; first < tokens.size(); first += count) {
      const std::size_t left = tokens.size() - first;
      count = std::min(Transformer::kMaxBatch, left);
      if (left == count + 1) --count;  // a single token would be summed in another order
      transformer_.forward(std::array{SequenceTokens{&sequence_, tokens.subspan(first, count)}}, memory_);
      logits_.clear();
      visit(first, count);
      if (progress && !progress({first + count - before, tokens.size() - before, "tokens"})) throw_cancelled();
    }
    std::vector<float> logits(vocabulary_size());
    transformer_.logits(std::array{count - 1}, memory_, logits.data());
    logits_ = std::move(logits);
  }

  void check(std::span<const TokenId> tokens) const {
    for (const TokenId token : tokens) require_token(*weights_, "token", token);
    if (tokens.size() > context_ - tokens_.size()) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("{} tokens do not fit the context of {} positions, {} of which are taken", tokens.size(),
                              context_, tokens_.size()));
    }
  }

  SessionThreads threads_;
  std::size_t context_;
  std::shared_ptr<const Weights> weights_;
  const Transformer& transformer_;
  Sequence sequence_;
  Workspace memory_;
  std::vector<TokenId> tokens_;  // all tokens fed; the sequence has computed the first of them
  std::optional<TokenId> unfed_;
  std::vector<float> logits_;
};

Session::Session(const Model& model, const SessionOptions& options) : Session(load_weights(model), options) {}
Session::Session(std::shared_ptr<const Weights> weights, const SessionOptions& options)
    : state_(std::make_unique<State>(required(std::move(weights)), options)) {}
Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

bool Session::has_tokenizer() const { return state_->weights().has_tokenizer(); }
const Tokenizer& Session::tokenizer() const { return state_->weights().tokenizer(); }

std::vector<TokenId> Session::prompt(std::string_view text) const { return tokenizer().encode_with_special(text); }

std::size_t Session::vocabulary_size() const { return state_->vocabulary_size(); }
std::size_t Session::context() const { return state_->context(); }
std::size_t Session::position() const { return state_->position(); }
std::span<const TokenId> Session::tokens() const { return state_->tokens(); }
void Session::reset() { state_->reset(); }
std::span<const float> Session::logits() const { return state_->logits(); }

void Session::truncate(std::size_t position) { state_->truncate(position); }

Session Session::fork() const { return Session(std::make_unique<State>(*state_)); }

void Session::feed(std::span<const TokenId> tokens, const std::stop_token& stop, const Progress& progress) {
  state_->feed(tokens, stop, progress, [](std::size_t, std::size_t) {});
}

std::vector<double> Session::log_probabilities(std::span<const TokenId> tokens, const std::stop_token& stop) {
  return state_->log_probabilities(tokens, stop);
}

Generation Session::generate(const GenerateOptions& options, const std::function<bool(TokenId)>& on_token) {
  Sampler sampler(options.sampling);
  sampler.see(tokens());
  TextEnd end(state_->weights(), tokens(), options);
  Generation result;
  while (result.tokens.size() < options.max_tokens) {
    if (!result.tokens.empty()) {
      if (position() == context()) {
        result.reason = StopReason::context_full;
        return result;
      }
      feed(std::span(result.tokens).last(1));
    }
    result.tokens.push_back(state_->choose(sampler));
    const bool go_on = !on_token || on_token(result.tokens.back());
    if (const auto reason = end.after(result.tokens.back())) {
      result.reason = *reason;
      return result;
    }
    if (!go_on) {
      result.reason = StopReason::callback;
      return result;
    }
  }
  return result;
}

std::string Session::continue_text(std::string_view text, const GenerateOptions& options,
                                   const std::function<bool(std::string_view)>& on_text) {
  const std::optional<TokenId> before = state_->last_fed();
  std::vector<TokenId> tokens = before ? tokenizer().encode(text) : prompt(text);
  if (const auto unfed = state_->unfed()) tokens.insert(tokens.begin(), *unfed);
  feed(tokens);
  TextStream stream(tokenizer());
  if (before) stream.add(*before);
  for (const TokenId token : tokens) stream.add(token);  // the space before its first word is not the continuation's
  std::string result;
  StopTexts stops(options.stop);
  const auto tell = [&](const std::string& piece) {
    result += piece;
    return !on_text || piece.empty() || on_text(piece);
  };
  generate(options, [&](TokenId token) { return tell(stops.add(stream.add(token))); });
  tell(stops.add(stream.finish()) + stops.finish());
  return result;
}

}  // namespace poise
