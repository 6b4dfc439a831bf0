// Projection: a matrix and a bias.
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

// The output of a projection: [tokens, width].
struct Target {
  float* data = nullptr;
  std::size_t width = 0;
};

// How one matrix for all parts orders their numbers.
enum class Fused : std::uint8_t {
  in_turn,   // those of the first part, then those of the next
  by_turns,  // the first of each, then the second of each
};

// Projects x [tokens, inputs] into the parts: each with its own projection, or all with one. `scratch` is working
// memory.
void project(std::span<const Projection> projections, const float* x, std::size_t tokens, Precision precision,
             std::span<const Target> parts, std::vector<float>& scratch, Fused fused = Fused::in_turn);
void project(const Projection& projection, const float* x, std::size_t tokens, Precision precision, float* out);

}  // namespace poise
