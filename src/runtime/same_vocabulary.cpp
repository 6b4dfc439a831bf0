#include "runtime/same_vocabulary.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {
namespace {

// Formats spell the same token in several ways: "▁the" and " the".
bool is_same(const Tokenizer& a, const Tokenizer& b, TokenId token) {
  const auto text = [&](const Tokenizer& of) { return of.decode(std::array{token}, SpecialTokens::shown); };
  return a.piece(token) == b.piece(token) || text(a) == text(b);
}

}  // namespace

void require_same_vocabulary(const Weights& model, const Weights& base) {
  if (model.vocabulary_size() != base.vocabulary_size()) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("the vocabularies differ: the model has scores of {} tokens, the base of {}",
                            model.vocabulary_size(), base.vocabulary_size()));
  }
  if (&model == &base || !model.has_tokenizer() || !base.has_tokenizer()) return;
  const std::size_t size = std::min(model.tokenizer().vocabulary().size(), base.tokenizer().vocabulary().size());
  for (std::size_t i = 0; i < size; ++i) {
    const auto token = static_cast<TokenId>(i);
    if (is_same(model.tokenizer(), base.tokenizer(), token)) continue;
    throw Error(ErrorKind::bad_argument,
                fmt::format("the vocabularies differ: token {} is \"{}\", and \"{}\" in the base", token,
                            model.tokenizer().piece(token), base.tokenizer().piece(token)));
  }
}

std::string shown_token(const Weights& weights, TokenId token) {
  const bool has_text = static_cast<std::size_t>(token) < weights.tokenizer().vocabulary().size();
  return fmt::format("\"{}\" ({})", has_text ? weights.tokenizer().piece(token) : "", token);
}

}  // namespace poise
