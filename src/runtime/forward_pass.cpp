#include "runtime/forward_pass.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {

ForwardPass::ForwardPass(std::shared_ptr<const Weights> weights, const SessionOptions& options)
    : threads_(options.threads),
      context_(context_of(*weights, options)),
      weights_(std::move(weights)),
      transformer_(*weights_->parts().transformer),
      sequence_(transformer_.begin(context_)) {
  memory_.precision = options.exact ? Precision::exact : Precision::fast;
}

void ForwardPass::begin(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) require_token(*weights_, "token", token);
  if (tokens.size() > context_) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("{} tokens do not fit the context of {} positions", tokens.size(), context_));
  }
  tokens_ = tokens;
  sequence_.clear();
  const std::size_t most = transformer_.recompute_after();
  sequence_.is_long = most != 0 && tokens.size() > most;
}

std::size_t ForwardPass::next(const std::stop_token& stop) {
  const std::size_t left = tokens_.size() - sequence_.position;
  if (left == 0) return 0;
  std::size_t count = std::min(Transformer::kMaxBatch, left);
  if (left == count + 1) --count;  // a single token would be summed in another order
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
