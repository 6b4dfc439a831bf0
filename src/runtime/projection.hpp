// Projection: a matrix and a bias, as models use them together.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/matrix.hpp"

namespace poise {

struct Projection {
  std::unique_ptr<Matrix> matrix;
  std::vector<float> bias = {};  // empty: none

  std::size_t outputs() const { return matrix->outputs(); }
};

// Where a projection's numbers go: [tokens, width].
struct Target {
  float* data = nullptr;
  std::size_t width = 0;
};

// How one matrix of all parts has their numbers.
enum class Fused : std::uint8_t {
  in_turn,   // those of the first part, then those of the next
  by_turns,  // the first of each, then the second of each
};

// Projects x [tokens, inputs] into the parts: each by a projection of its own, or all by one. `scratch` is memory to
// compute in.
void project(std::span<const Projection> projections, const float* x, std::size_t tokens, Precision precision,
             std::span<const Target> parts, std::vector<float>& scratch, Fused fused = Fused::in_turn);
void project(const Projection& projection, const float* x, std::size_t tokens, Precision precision, float* out);

}  // namespace poise
