// The computation of small Mistral models: a second forward pass, written to be read.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/random_model.hpp"

namespace poise {

// Computes the forward pass in float64, position by position as the papers have it, without cache, batches or threads:
// the logits after each token, and hidden states. Requires: the weights outlive it.
class Reference {
 public:
  using Vector = std::vector<double>;

  Reference(const Config& config, const NamedNumbers& weights) : c_(config), weights_(weights) {}

  std::vector<Vector> logits(const std::vector<std::int32_t>& tokens) const;

  // Returns for each layer the hidden states of all tokens: the embedding, then the output of each block; the last is
  // normed.
  std::vector<std::vector<Vector>> hidden_states(const std::vector<std::int32_t>& tokens) const;

 private:
  void layer(const std::string& name, std::vector<Vector>& x) const;
  Vector row(const std::string& name, std::size_t index) const;
  Vector times(const std::string& name, const Vector& x) const;
  Vector norm(const Vector& x, const std::string& name) const;
  Vector rotated(Vector x, std::size_t position) const;

  Config c_;
  const NamedNumbers& weights_;
};

}  // namespace poise
