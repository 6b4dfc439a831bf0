// Plans rotary embeddings from the keys of config.json: rope_theta, partial_rotary_factor, rope_scaling or
// rope_parameters.
#pragma once

#include <cstdint>
#include <string_view>

#include "family/config_view.hpp"
#include "family/decoder_plan.hpp"

namespace poise {

// Holds settings of rotary embeddings that depend on the family or the kind of layers.
struct RopeOptions {
  float theta = 10000;
  bool partial = false;                 // follows partial_rotary_factor
  std::string_view su = {};             // the type that replaces "su" and "yarn"; empty: none
  std::int64_t original_positions = 0;  // default of original_max_position_embeddings; 0: max_position_embeddings
};

// Returns the default attention factor of yarn: 1 + 0.1 scale ln(factor), or 1 if factor <= 1.
double compute_yarn_attention(double factor, double scale = 1);

// By default, yarn blends the frequencies that make between 1 and 32 rotations in the original positions.
inline constexpr double kYarnBetaFast = 32;
inline constexpr double kYarnBetaSlow = 1;

// Returns the last of kRopeObjects that config.json has, or null.
const Attributes* find_rope_scaling(const ConfigView& view);

// Returns the plan of the rotation. `scaling` may be null. Throws unsupported for keys, types and sizes that Poise does
// not implement, and invalid_file for invalid values.
RopePlan make_rope_plan(const ConfigView& view, const Attributes* scaling, const RopeOptions& options);

}  // namespace poise
