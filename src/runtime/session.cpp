#include <poise/session.hpp>

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "runtime/computation.hpp"
#include "runtime/computed_text.hpp"
#include "runtime/speculation.hpp"
#include "runtime/stop_texts.hpp"

namespace poise {
std::string_view finish_reason(StopReason reason) {
  switch (reason) {
    case StopReason::max_tokens: return "length";
    case StopReason::context_full: return "context";
    case StopReason::end_of_text:
    case StopReason::stop_text:
    case StopReason::callback: break;
  }
  return "stop";
}

class Session::State : public Computation {
 public:
  State(std::shared_ptr<const Weights> weights, const SessionOptions& options)
      : Computation(std::move(weights), options), text_(begin_sequence(context_)) {
    require_output_matrix(*weights_);
    if (options.draft) speculation_.emplace(*weights_, options);
  }

  State(const State& other) : Computation(other), text_(other.text_) {
    if (other.speculation_) speculation_.emplace(*other.speculation_);
    drop_guesses();
  }

  std::size_t vocabulary_size() const { return transformer_.vocabulary_size(); }
  std::size_t context() const { return context_; }
  std::size_t position() const { return text_.tokens.size(); }
  std::span<const TokenId> tokens() const { return text_.tokens; }

  void reset() {
    drop_guesses();
    text_.sequence.clear();
    text_.tokens.clear();
    text_.logits.clear();
    text_.pending.reset();
  }

  void truncate(std::size_t position) {
    if (position > text_.tokens.size()) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("{} tokens are more than the {} that the session has", position, text_.tokens.size()));
    }
    drop_guesses();
    text_.pending.reset();
    if (position == text_.tokens.size()) return;
    const bool was_short = text_.sequence.is_long && !transformer_.is_long(position);
    const std::size_t computed = std::min(position, text_.sequence.position);
    if (was_short || !transformer_.truncate(computed, text_.sequence)) text_.sequence.clear();
    text_.tokens.resize(position);
    text_.logits.clear();
  }

  // Feeds tokens in batches. After each batch, calls `visit` with the index of its first token and the number of its
  // tokens.
  template <typename Visit>
  void feed(std::span<const TokenId> tokens, const std::stop_token& stop, const Progress& progress, Visit&& visit) {
    check_tokens(tokens);
    if (tokens.empty()) return;
    if (speculation_ && !progress && tokens.size() == 1 && text_.pending == tokens[0] &&
        speculation_->feed(tokens[0], text_, context_ - position(), threads_, memory_, stop))
      return;
    drop_guesses();
    text_.tokens.insert(text_.tokens.end(), tokens.begin(), tokens.end());
    if (!text_.sequence.is_long && transformer_.is_long(text_.tokens.size())) {
      text_.sequence.clear();
      text_.sequence.is_long = true;
      text_.logits.clear();
    }
    try {
      threads_.run(stop, [&] { compute_missing_tokens(progress, visit); });
    } catch (...) {
      text_.tokens.resize(text_.sequence.position);
      if (text_.sequence.is_long && !transformer_.is_long(text_.tokens.size())) text_.sequence.clear();
      if (text_.logits.empty()) text_.pending.reset();  // if there are still logits, no token was computed
      throw;
    }
    text_.pending.reset();
  }

  Model snapshot() const { return make_session_model(text_, make_fingerprint()); }

  void restore(const Model& model, const std::function<void()>& confirm) {
    ComputedText text(begin_sequence(context_));
    read_session_model(model, make_fingerprint(), transformer_, context_, text);
    confirm();
    drop_guesses();
    text_ = std::move(text);
  }

  TokenId sample(Sampler& sampler) {
    const std::span<const float> scores = drop_padding_scores(*weights_, logits());
    text_.pending = speculation_ ? speculation_->sample(sampler, scores) : sampler.sample(scores);
    return *text_.pending;
  }

  DraftCounts draft_counts() const { return speculation_ ? speculation_->counts() : DraftCounts(); }

  std::optional<TokenId> pending() const { return text_.pending; }

  std::span<const float> logits() const {
    if (text_.logits.empty()) {
      throw Error(ErrorKind::bad_argument, text_.tokens.empty()
                                               ? "there are no scores before the first token has been fed"
                                               : "there are no scores: the last call dropped tokens, or was cancelled; "
                                                 "feed tokens first");
    }
    return text_.logits;
  }

  std::span<const float> hidden_state() const {
    (void)logits();  // throws if there are none
    if (text_.hidden_state.empty())
      throw Error(ErrorKind::bad_argument, "a session that was restored has no hidden state before it is fed");
    return text_.hidden_state;
  }

  std::vector<float> hidden_states(std::span<const TokenId> tokens, std::size_t layer, const std::stop_token& stop) {
    require_layer(*weights_, layer);
    reset();
    std::vector<float> result;
    const KeptLayer kept(memory_, layer);
    feed(tokens, stop, {},
         [&](std::size_t, std::size_t) { result.insert(result.end(), memory_.kept.begin(), memory_.kept.end()); });
    return result;
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
      transformer_.compute_logits(std::span(places).first(count), memory_, rows.data());
      for (std::size_t i = 0; i < count && first + i + 1 < tokens.size(); ++i) {
        result.push_back(log_probability(std::span(rows).subspan(i * size, size), tokens[first + i + 1]));
      }
    });
    return result;
  }

 private:
  // Makes forward passes keep the hidden states of a layer, as long as this object lives.
  class KeptLayer {
   public:
    KeptLayer(Workspace& memory, std::size_t layer) : memory_(memory) { memory.kept_layer = layer; }
    ~KeptLayer() { memory_.kept_layer.reset(); }
    KeptLayer(const KeptLayer&) = delete;
    KeptLayer& operator=(const KeptLayer&) = delete;

   private:
    Workspace& memory_;
  };

  // Computes the tokens that the sequence does not have yet, and the scores after the last one.
  template <typename Visit>
  void compute_missing_tokens(const Progress& progress, Visit&& visit) {
    const std::span<const TokenId> tokens = text_.tokens;
    const std::size_t before = text_.sequence.position;
    std::size_t count = 0;
    for (std::size_t first = before; first < tokens.size(); first += count) {
      count = Transformer::count_next_tokens(tokens.size() - first);
      transformer_.forward(std::array{SequenceTokens{&text_.sequence, tokens.subspan(first, count)}}, memory_);
      text_.logits.clear();
      visit(first, count);
      if (progress && !progress({first + count - before, tokens.size() - before, "tokens"})) throw_cancelled();
    }
    std::vector<float> logits(vocabulary_size());
    transformer_.compute_logits(std::array{count - 1}, memory_, logits.data());
    text_.hidden_state.assign(memory_.normed.data(), memory_.normed.data() + transformer_.hidden_size());
    text_.logits = std::move(logits);
  }

  void drop_guesses() {
    if (speculation_) speculation_->drop_guesses(text_);
  }

  std::string make_fingerprint() const {
    std::string result;
    threads_.run({}, [&] { result = find_fingerprint(*weights_); });
    return result;
  }

  void check_tokens(std::span<const TokenId> tokens) const {
    for (const TokenId token : tokens) require_token(*weights_, "token", token);
    if (tokens.size() > context_ - text_.tokens.size()) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("{} tokens do not fit the context of {} tokens, which already has {}", tokens.size(),
                              context_, text_.tokens.size()));
    }
  }

  ComputedText text_;
  std::optional<Speculation> speculation_;  // only if the session has a draft
};

Session::Session(const Model& model, const SessionOptions& options) : Session(load_weights(model), options) {}
Session::Session(std::shared_ptr<const Weights> weights, const SessionOptions& options)
    : state_(std::make_unique<State>(
          require_weights(std::move(weights), "a session needs weights, found a null pointer"), options)) {}
Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

bool Session::has_tokenizer() const { return state_->weights().has_tokenizer(); }
const Tokenizer& Session::tokenizer() const { return state_->weights().tokenizer(); }

std::vector<TokenId> Session::prompt(std::string_view text) const { return tokenizer().encode_with_special(text); }

const Weights& Session::weights() const { return state_->weights(); }
std::size_t Session::vocabulary_size() const { return state_->vocabulary_size(); }
std::size_t Session::context() const { return state_->context(); }
std::size_t Session::position() const { return state_->position(); }
std::span<const TokenId> Session::tokens() const { return state_->tokens(); }
void Session::reset() { state_->reset(); }
std::span<const float> Session::logits() const { return state_->logits(); }
std::span<const float> Session::hidden_state() const { return state_->hidden_state(); }

TokenId Session::sample(Sampler& sampler) { return state_->sample(sampler); }
DraftCounts Session::draft_counts() const { return state_->draft_counts(); }
std::optional<TokenId> Session::pending() const { return state_->pending(); }

void Session::truncate(std::size_t position) { state_->truncate(position); }

Model Session::snapshot() const { return state_->snapshot(); }
void Session::restore(const Model& model, const std::function<void()>& confirm) { state_->restore(model, confirm); }

Session Session::fork() const { return Session(std::make_unique<State>(*state_)); }

void Session::feed(std::span<const TokenId> tokens, const std::stop_token& stop, const Progress& progress) {
  state_->feed(tokens, stop, progress, [](std::size_t, std::size_t) {});
}

std::vector<float> Session::hidden_states(std::span<const TokenId> tokens, std::size_t layer,
                                          const std::stop_token& stop) {
  return state_->hidden_states(tokens, layer, stop);
}

std::vector<double> Session::log_probabilities(std::span<const TokenId> tokens, const std::stop_token& stop) {
  return state_->log_probabilities(tokens, stop);
}

Generation Session::generate(const GenerateOptions& options, const std::function<bool(TokenId)>& on_token) {
  Sampler sampler(options.sampling);
  sampler.see(tokens());
  require_valid_options(state_->weights(), options);
  std::optional<ContinuationStream> text;
  if (!options.stop.empty()) text.emplace(tokenizer(), tokens(), options.stop);
  Generation result;
  while (result.tokens.size() < options.max_tokens) {
    if (!result.tokens.empty()) {
      if (position() == context()) {
        result.reason = StopReason::context_full;
        return result;
      }
      feed(std::span(result.tokens).last(1));
    }
    const TokenId token = result.tokens.emplace_back(sample(sampler));
    const bool go_on = !on_token || on_token(token);
    if (ends_text(state_->weights(), token, options)) {
      result.reason = StopReason::end_of_text;
      return result;
    }
    if (text) text->add(token);
    if (text && text->is_stopped()) {
      result.reason = StopReason::stop_text;
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
  std::vector<TokenId> tokens = position() > 0 ? tokenizer().encode(text) : prompt(text);
  if (const auto first = pending()) tokens.insert(tokens.begin(), *first);
  feed(tokens);
  ContinuationStream stream(tokenizer(), this->tokens(), options.stop);
  std::string result;
  const auto emit = [&](const std::string& piece) {
    result += piece;
    return !on_text || piece.empty() || on_text(piece);
  };
  generate(options, [&](TokenId token) { return emit(stream.add(token)); });
  emit(stream.finish());
  return result;
}

}  // namespace poise
