#include "runtime/computation.hpp"

#include <utility>

#include <fmt/format.h>

namespace poise {

Computation::Computation(std::shared_ptr<const Weights> weights, const SessionOptions& options)
    : threads_(options.threads),
      context_(find_context(*weights, options)),
      cache_(choose_cache_type(options)),
      weights_(std::move(weights)),
      transformer_(*weights_->parts().transformer) {
  memory_.precision = options.exact ? Precision::exact : Precision::fast;
}

Computation::Computation(const Computation& other)
    : threads_(other.threads_),
      context_(other.context_),
      cache_(other.cache_),
      weights_(other.weights_),
      transformer_(other.transformer_) {
  memory_.precision = other.memory_.precision;
}

void Computation::require_fitting_tokens(std::span<const TokenId> tokens) const {
  for (const TokenId token : tokens) require_token(*weights_, "token", token);
  if (tokens.size() > context_) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("{} tokens do not fit the context of {} tokens", tokens.size(), context_));
  }
}

void refuse_non_finite(const std::string& what, double value, const std::string& path) {
  const char* const name = std::isnan(value) ? "NaN" : value > 0 ? "infinite" : "minus infinity";
  throw Error(ErrorKind::unsupported,
              fmt::format("{} is {}: the weights hold values that are not finite, or overflow", what, name), path);
}

}  // namespace poise
