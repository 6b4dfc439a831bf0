#include "runtime/projection.hpp"

#include <algorithm>

namespace poise {
namespace {

void add_bias(const std::vector<float>& bias, std::size_t tokens, float* y) {
  if (bias.empty()) return;
  for (std::size_t t = 0; t < tokens; ++t, y += bias.size()) {
    for (std::size_t i = 0; i < bias.size(); ++i) y[i] += bias[i];
  }
}

// One token's numbers.
void split(const float* from, std::span<const Target> parts, std::size_t t, Fused fused) {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    float* const to = parts[p].data + t * parts[p].width;
    if (fused == Fused::in_turn) {
      std::copy_n(from, parts[p].width, to);
      from += parts[p].width;
    } else {
      for (std::size_t i = 0; i < parts[p].width; ++i) to[i] = from[i * parts.size() + p];
    }
  }
}

}  // namespace

void project(std::span<const Projection> projections, const float* x, std::size_t tokens, Precision precision,
             std::span<const Target> parts, std::vector<float>& scratch, Fused fused) {
  if (projections.size() == parts.size()) {
    std::vector<Product> products;
    for (std::size_t i = 0; i < parts.size(); ++i) products.push_back({projections[i].matrix.get(), parts[i].data});
    multiply(products, x, tokens, precision);
    for (std::size_t i = 0; i < parts.size(); ++i) add_bias(projections[i].bias, tokens, parts[i].data);
    return;
  }
  const Projection& all = projections.front();
  scratch.resize(tokens * all.outputs());
  project(all, x, tokens, precision, scratch.data());
  for (std::size_t t = 0; t < tokens; ++t) split(scratch.data() + t * all.outputs(), parts, t, fused);
}

void project(const Projection& projection, const float* x, std::size_t tokens, Precision precision, float* out) {
  multiply(*projection.matrix, x, tokens, out, precision);
  add_bias(projection.bias, tokens, out);
}

}  // namespace poise
