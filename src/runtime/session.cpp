#include <poise/session.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <tbb/info.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <poise/error.hpp>

#include "runtime/cancelled.hpp"
#include "runtime/stop_texts.hpp"
#include "runtime/weights.hpp"

namespace poise {
namespace {

constexpr unsigned kMaxThreads = 1024;

int concurrency(unsigned threads) {
  if (threads > kMaxThreads)
    throw Error(ErrorKind::bad_argument, fmt::format("{} threads, at most {} make sense", threads, kMaxThreads));
  // oneTBB prints a warning when it is asked for more threads than there are processors.
  const int processors = tbb::info::default_concurrency();
  return threads == 0 ? processors : std::min(static_cast<int>(threads), processors);
}

std::shared_ptr<const Weights> required(std::shared_ptr<const Weights> weights) {
  if (!weights) throw Error(ErrorKind::bad_argument, "a session needs weights");
  return weights;
}

std::size_t context_of(const Weights& weights, const SessionOptions& options) {
  const std::size_t most = weights.max_context();
  if (options.context > most) {
    throw Error(
        ErrorKind::bad_argument,
        fmt::format("a context of {} positions; the model's max_position_embeddings is {}", options.context, most));
  }
  return options.context == 0 ? most : options.context;
}

}  // namespace

class Session::State {
 public:
  State(std::shared_ptr<const Weights> weights, const SessionOptions& options)
      : threads_(concurrency(options.threads)),
        arena_(threads_),
        context_(context_of(*weights, options)),
        weights_(std::move(weights)),
        transformer_(*weights_->parts().transformer),
        sequence_(transformer_.begin(context_)) {
    sequence_.precision = options.exact ? Precision::exact : Precision::fast;
  }

  State(const State& other)
      : threads_(other.threads_),
        arena_(threads_),
        context_(other.context_),
        weights_(other.weights_),
        transformer_(other.transformer_),
        sequence_(other.sequence_),
        tokens_(other.tokens_),
        unfed_(other.unfed_),
        logits_(other.logits_) {}

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

  // Feeds tokens batch by batch; after each, `visit` gets the place of its first token among all, and their number.
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
      until(stop, [&] { compute(progress, visit); });
    } catch (...) {
      tokens_.resize(sequence_.position);
      if (sequence_.is_long && tokens_.size() <= transformer_.recompute_after()) sequence_.clear();
      if (logits_.empty()) unfed_.reset();  // otherwise none of these tokens were fed
      throw;
    }
    unfed_.reset();
  }

  TokenId choose(Sampler& sampler) { return *(unfed_ = sampler.sample(choices())); }

  // None: nothing has been fed.
  std::optional<TokenId> last_fed() const { return tokens_.empty() ? std::nullopt : std::optional(tokens_.back()); }
  // The token that was chosen last, until something is fed.
  std::optional<TokenId> unfed() const { return unfed_; }

  std::span<const float> logits() const {
    if (logits_.empty())
      throw Error(ErrorKind::bad_argument, "there are no scores before the first token has been fed");
    return logits_;
  }

  // Tokens that can be told in text; an embedding may have more rows, as padding.
  std::span<const float> choices() const {
    const std::span<const float> all = logits();
    return weights_->has_tokenizer() ? all.first(std::min(all.size(), weights_->tokenizer().vocabulary().size())) : all;
  }

  void require_token(std::string_view what, TokenId token) const {
    if (token >= 0 && static_cast<std::size_t>(token) < vocabulary_size()) return;
    throw Error(ErrorKind::bad_argument,
                fmt::format("{} {} is out of range: the model has {} tokens", what, token, vocabulary_size()));
  }

  std::vector<double> log_probabilities(std::span<const TokenId> tokens, const std::stop_token& stop) {
    reset();
    std::vector<double> result;
    std::vector<float> rows;
    feed(tokens, stop, {}, [&](std::size_t first, std::size_t count) {
      const std::size_t size = vocabulary_size();
      rows.resize(count * size);
      transformer_.logits(0, count, sequence_, rows.data());
      for (std::size_t i = 0; i < count && first + i + 1 < tokens.size(); ++i) {
        result.push_back(log_probability(std::span(rows).subspan(i * size, size), tokens[first + i + 1]));
      }
    });
    return result;
  }

 private:
  // Computes on the session's threads. A request to stop cancels the loops that the work has begun.
  template <typename Work>
  void until(const std::stop_token& stop, const Work& work) {
    arena_.execute([&] {
      if (!stop.stop_possible()) return work();
      tbb::task_group_context context;
      const std::stop_callback cancel(stop, [&] { context.cancel_group_execution(); });
      tbb::task_group group(context);
      if (group.run_and_wait(work) == tbb::canceled) throw_cancelled();
    });
  }

  // Computes the tokens that the sequence does not have yet.
  template <typename Visit>
  void compute(const Progress& progress, Visit&& visit) {
    const std::span<const TokenId> tokens = tokens_;
    const std::size_t before = sequence_.position;
    std::size_t count = 0;
    for (std::size_t first = before; first < tokens.size(); first += count) {
      const std::size_t left = tokens.size() - first;
      count = std::min(Transformer::kMaxBatch, left);
      if (left == count + 1) --count;  // a token alone would be summed in another order
      transformer_.forward(tokens.subspan(first, count), sequence_);
      logits_.clear();
      visit(first, count);
      if (progress && !progress({first + count - before, tokens.size() - before, "tokens"})) throw_cancelled();
    }
    std::vector<float> logits(vocabulary_size());
    transformer_.logits(count - 1, 1, sequence_, logits.data());
    logits_ = std::move(logits);
  }

  void check(std::span<const TokenId> tokens) const {
    for (const TokenId token : tokens) require_token("token", token);
    if (tokens.size() > context_ - tokens_.size()) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("{} tokens do not fit the context of {} positions, {} of which are taken", tokens.size(),
                              context_, tokens_.size()));
    }
  }

  int threads_;
  tbb::task_arena arena_;
  std::size_t context_;
  std::shared_ptr<const Weights> weights_;
  const Transformer& transformer_;
  Sequence sequence_;
  std::vector<TokenId> tokens_;  // all that were fed; the sequence has computed the first of them
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

namespace {

// Looks for stop texts in what tokens say.
class StopWatch {
 public:
  StopWatch(const Session& session, const std::vector<std::string>& stops)
      : stops_(stops), stream_(session.tokenizer()) {
    // The last tokens decide on the space before the first word, and on a character's first bytes.
    constexpr std::size_t kLooksBack = 1024;
    const std::span<const TokenId> all = session.tokens();
    for (const TokenId token : all.last(std::min(all.size(), kLooksBack))) {
      if (static_cast<std::size_t>(token) < session.tokenizer().vocabulary().size()) stream_.add(token);
    }
  }
  bool ends_with(TokenId token) {
    stops_.add(stream_.add(token));
    return stops_.found();
  }

 private:
  StopTexts stops_;
  TextStream stream_;
};

}  // namespace

Generation Session::generate(const GenerateOptions& options, const std::function<bool(TokenId)>& on_token) {
  Sampler sampler(options.sampling);
  sampler.see(tokens());
  std::optional<StopWatch> stop;
  if (!options.stop.empty()) stop.emplace(*this, options.stop);
  if (options.stop_id) state_->require_token("stop id", *options.stop_id);
  for (const auto& [token, bias] : options.sampling.logit_bias) state_->require_token("logit-bias: token", token);
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
    if (!options.ignore_eos && state_->weights().parts().ends_text(result.tokens.back(), options.stop_id)) {
      result.reason = StopReason::end_of_text;
      return result;
    }
    if (stop && stop->ends_with(result.tokens.back())) {
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
