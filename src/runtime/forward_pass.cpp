#include "runtime/forward_pass.hpp"

#include <array>
#include <numeric>

namespace poise {

ForwardPass::ForwardPass(std::shared_ptr<const Weights> weights, const SessionOptions& options)
    : Computation(std::move(weights), options), sequence_(begin_sequence(context_)) {
  require_output(*weights_);
}

void ForwardPass::begin(std::span<const TokenId> tokens) {
  require_fit(tokens);
  tokens_ = tokens;
  sequence_.clear();
  sequence_.is_long = transformer_.is_long(tokens.size());
}

std::size_t ForwardPass::next(const std::stop_token& stop) {
  const std::size_t left = tokens_.size() - sequence_.position;
  if (left == 0) return 0;
  const std::size_t count = Transformer::count_next(left);
  threads_.run(stop, [&] {
    transformer_.forward(std::array{SequenceTokens{&sequence_, tokens_.subspan(sequence_.position, count)}}, memory_);
  });
  return count;
}

void ForwardPass::logits(std::size_t first, std::size_t count, std::vector<float>& out, const std::stop_token& stop) {
  out.resize(count * transformer_.vocabulary_size());
  std::vector<std::size_t> rows(count);
  std::iota(rows.begin(), rows.end(), first);
  threads_.run(stop, [&] { transformer_.logits(rows, memory_, out.data()); });
}

}  // namespace poise
