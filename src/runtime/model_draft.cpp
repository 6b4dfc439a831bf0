#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "runtime/draft.hpp"
#include "runtime/weights.hpp"

namespace poise {
namespace {

[[noreturn]] void refuse(const std::string& difference) {
  throw Error(ErrorKind::bad_argument, "the draft has another vocabulary than the model: " + difference);
}

void require_draft_vocabulary(const Weights& model, const Weights& draft) {
  if (!model.has_tokenizer() || !draft.has_tokenizer()) {
    if (model.vocabulary_size() == draft.vocabulary_size()) return;
    refuse(fmt::format("{} tokens, not {}", draft.vocabulary_size(), model.vocabulary_size()));
  }
  const Vocabulary& ours = model.tokenizer().vocabulary();
  const Vocabulary& its = draft.tokenizer().vocabulary();
  for (std::size_t id = 0; id < std::min(ours.size(), its.size()); ++id) {
    if (ours.text(id) == its.text(id)) continue;
    refuse(fmt::format("token {} is {}, not {}", id, to_json(std::string(its.text(id))),
                       to_json(std::string(ours.text(id)))));
  }
  if (ours.size() != its.size()) refuse(fmt::format("{} tokens, not {}", its.size(), ours.size()));
}

class ModelDraft final : public Draft {
 public:
  ModelDraft(std::shared_ptr<const Weights> weights, const SessionOptions& options)
      : weights_(weights), session_(std::move(weights), options) {}
  ModelDraft(const ModelDraft& other) : Draft(other), weights_(other.weights_), session_(other.session_.fork()) {}

  std::unique_ptr<Draft> copy() const override { return std::make_unique<ModelDraft>(*this); }

  std::vector<Guess> guess(std::span<const TokenId> tokens, std::size_t most, Sampler& sampler) override {
    std::vector<Guess> guesses;
    if (tokens.empty() || tokens.size() > session_.context()) return guesses;
    follow(tokens);
    most = std::min(most, session_.context() - tokens.size() + 1);
    while (guesses.size() < most) {
      if (!guesses.empty()) session_.feed(std::array{guesses.back().token});
      guesses.push_back(sampler.guess(choices(*weights_, session_.logits())));
    }
    return guesses;
  }

 private:
  // Feeds what the session does not have of the text.
  void follow(std::span<const TokenId> tokens) {
    const std::span<const TokenId> known = session_.tokens();
    const auto differs = std::mismatch(tokens.begin(), tokens.end(), known.begin(), known.end()).first;
    // If all tokens are known, the last one is computed again for its scores.
    const std::size_t same = std::min(static_cast<std::size_t>(differs - tokens.begin()), tokens.size() - 1);
    session_.truncate(same);
    session_.feed(tokens.subspan(same));
  }

  std::shared_ptr<const Weights> weights_;
  Session session_;
};

}  // namespace

std::unique_ptr<Draft> make_model_draft(const Weights& weights, const SessionOptions& options) {
  const std::shared_ptr<const Weights>& draft = options.draft->model;
  require_draft_vocabulary(weights, *draft);
  const std::size_t context = context_of(weights, options);
  return std::make_unique<ModelDraft>(draft, SessionOptions{.threads = options.threads,
                                                            .context = std::min(context, draft->max_context()),
                                                            .exact = options.exact,
                                                            .cache = options.cache});
}

}  // namespace poise
