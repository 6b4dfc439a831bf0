#include "runtime/forward_pass.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {

ForwardPass::ForwardPass(std::shared_ptr<const Weights> weights, const SessionOptions& options)
    : Computation(std::move(weights), options), sequence_(begin_sequence(context_)) {
  require_output_matrix(*weights_);
}

void ForwardPass::begin_text(std::span<const TokenId> tokens) {
  require_fitting_tokens(tokens);
  tokens_ = tokens;
  sequence_.clear();
  sequence_.is_long = transformer_.is_long(tokens.size());
}

std::size_t ForwardPass::compute_next_tokens(const std::stop_token& stop) {
  const std::size_t left = tokens_.size() - sequence_.position;
  if (left == 0) return 0;
  const std::size_t count = Transformer::count_next_tokens(left);
  threads_.run(stop, [&] {
    transformer_.forward(std::array{SequenceTokens{&sequence_, tokens_.subspan(sequence_.position, count)}}, memory_);
  });
  return count;
}

void ForwardPass::compute_logits(std::size_t first, std::size_t count, std::vector<float>& out,
                                 const std::stop_token& stop) {
  out.resize(count * transformer_.vocabulary_size());
  std::vector<std::size_t> rows(count);
  std::iota(rows.begin(), rows.end(), first);
  threads_.run(stop, [&] { transformer_.compute_logits(rows, memory_, out.data()); });
}

namespace {

// Returns true if an id is the same text in both vocabularies. Formats spell a token in different ways: "▁the" and
// " the".
bool is_same_token(const Tokenizer& a, const Tokenizer& b, TokenId token) {
  const auto decode_token = [&](const Tokenizer& tokenizer) {
    return tokenizer.decode(std::array{token}, SpecialTokens::shown);
  };
  return a.piece(token) == b.piece(token) || decode_token(a) == decode_token(b);
}

}  // namespace

std::vector<TokenId> encode_with_end(const Weights& weights, std::string_view text) {
  std::vector<TokenId> tokens = weights.tokenizer().encode_with_special(text);
  const TokenId eos = weights.tokenizer().vocabulary().eos_id;
  if (eos >= 0 && (tokens.empty() || tokens.back() != eos)) tokens.push_back(eos);
  return tokens;
}

std::optional<TokenId> find_first_token(const Weights& weights) {
  if (!weights.has_tokenizer()) return std::nullopt;
  const std::vector<TokenId> none = weights.tokenizer().encode_with_special("");
  const bool has_bos = !none.empty() && none.front() == weights.tokenizer().vocabulary().bos_id;
  return has_bos ? std::optional(none.front()) : std::nullopt;
}

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
    if (is_same_token(model.tokenizer(), base.tokenizer(), token)) continue;
    throw Error(ErrorKind::bad_argument,
                fmt::format("the vocabularies differ: token {} is \"{}\", and \"{}\" in the base", token,
                            model.tokenizer().piece(token), base.tokenizer().piece(token)));
  }
}

std::string format_token(const Weights& weights, TokenId token) {
  const bool has_text = static_cast<std::size_t>(token) < weights.tokenizer().vocabulary().size();
  return fmt::format("\"{}\" ({})", has_text ? weights.tokenizer().piece(token) : "", token);
}

}  // namespace poise
