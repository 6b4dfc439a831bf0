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

// log(softmax(logits)[token])
double log_probability(std::span<const float> logits, TokenId token) {
  const double best = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - best);
  return static_cast<double>(logits[static_cast<std::size_t>(token)]) - best - std::log(sum);
}

}  // namespace

class Session::State {
 public:
  State(std::shared_ptr<const Weights> weights, const SessionOptions& options)
      : arena_(concurrency(options.threads)),
        context_(context_of(*weights, options)),
        weights_(std::move(weights)),
        transformer_(*weights_->parts().transformer),
        sequence_(transformer_.begin(context_)) {
    sequence_.precision = options.exact ? Precision::exact : Precision::fast;
  }

  const Weights& weights() const { return *weights_; }
  std::size_t vocabulary_size() const { return transformer_.vocabulary_size(); }
  std::size_t context() const { return context_; }
  std::size_t position() const { return sequence_.position; }

  void reset() {
    sequence_.position = 0;
    sequence_.is_long = false;
    fed_.clear();
    logits_.clear();
    last_fed_.reset();
    unfed_.reset();
  }

  // Feeds tokens batch by batch; after each, `visit` gets its first token's index and their number.
  template <typename Visit>
  void feed(std::span<const TokenId> tokens, const std::stop_token& stop, Visit&& visit) {
    check(tokens);
    if (tokens.empty()) return;
    if (grows_long(tokens)) {
      sequence_.is_long = true;
      sequence_.position = 0;
      take({});
      tokens = fed_;
    }
    until(stop, [&] {
      std::size_t count = 0;
      for (std::size_t first = 0; first < tokens.size(); first += count) {
        const std::size_t left = tokens.size() - first;
        count = std::min(Transformer::kMaxBatch, left);
        if (left == count + 1) --count;  // a token alone would be summed in another order
        transformer_.forward(tokens.subspan(first, count), sequence_);
        take(tokens[first + count - 1]);
        visit(first, count);
      }
      std::vector<float> logits(vocabulary_size());
      transformer_.logits(count - 1, 1, sequence_, logits.data());
      logits_ = std::move(logits);
    });
  }

  TokenId choose(Sampler& sampler) { return *(unfed_ = sampler.sample(choices())); }

  // None: nothing has been fed.
  std::optional<TokenId> last_fed() const { return last_fed_; }
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
    feed(tokens, stop, [&](std::size_t first, std::size_t count) {
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

  // What the sequence ends with now; nothing: it is to be computed anew.
  void take(std::optional<TokenId> last) {
    last_fed_ = last;
    unfed_.reset();
    logits_.clear();
  }

  // Do these tokens make the sequence one that is computed anew? Keeps what has been fed.
  bool grows_long(std::span<const TokenId> tokens) {
    const std::size_t most = transformer_.recompute_after();
    if (most == 0 || sequence_.is_long) return false;
    fed_.resize(sequence_.position);
    fed_.insert(fed_.end(), tokens.begin(), tokens.end());
    return fed_.size() > most;
  }

  void check(std::span<const TokenId> tokens) const {
    for (const TokenId token : tokens) require_token("token", token);
    if (tokens.size() > context_ - sequence_.position) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("{} tokens do not fit the context of {} positions, {} of which are taken", tokens.size(),
                              context_, sequence_.position));
    }
  }

  tbb::task_arena arena_;
  std::size_t context_;
  std::shared_ptr<const Weights> weights_;
  const Transformer& transformer_;
  Sequence sequence_;
  std::vector<TokenId> fed_;  // as long as the sequence may be computed anew
  std::optional<TokenId> last_fed_;
  std::optional<TokenId> unfed_;
  std::vector<float> logits_;
};

Session::Session(const Model& model, const SessionOptions& options) : Session(load_weights(model), options) {}
Session::Session(std::shared_ptr<const Weights> weights, const SessionOptions& options)
    : state_(std::make_unique<State>(required(std::move(weights)), options)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

bool Session::has_tokenizer() const { return state_->weights().has_tokenizer(); }
const Tokenizer& Session::tokenizer() const { return state_->weights().tokenizer(); }

std::vector<TokenId> Session::prompt(std::string_view text) const { return tokenizer().encode_with_special(text); }

std::size_t Session::vocabulary_size() const { return state_->vocabulary_size(); }
std::size_t Session::context() const { return state_->context(); }
std::size_t Session::position() const { return state_->position(); }
void Session::reset() { state_->reset(); }
std::span<const float> Session::logits() const { return state_->logits(); }

void Session::feed(std::span<const TokenId> tokens, const std::stop_token& stop) {
  state_->feed(tokens, stop, [](std::size_t, std::size_t) {});
}

std::vector<double> Session::log_probabilities(std::span<const TokenId> tokens, const std::stop_token& stop) {
  return state_->log_probabilities(tokens, stop);
}

Generation Session::generate(const GenerateOptions& options, const std::function<bool(TokenId)>& on_token) {
  Sampler sampler(options.sampling);
  if (options.stop_id) state_->require_token("stop id", *options.stop_id);
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
  const auto tell = [&](const std::string& piece) {
    result += piece;
    return !on_text || piece.empty() || on_text(piece);
  };
  generate(options, [&](TokenId token) { return tell(stream.add(token)); });
  tell(stream.finish());
  return result;
}

}  // namespace poise
