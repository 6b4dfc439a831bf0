// Rotary embeddings as config.json describes them: rope_theta, partial_rotary_factor, rope_scaling or rope_parameters.
#pragma once

#include <cstdint>
#include <string_view>

#include "family/config_view.hpp"
#include "family/decoder_plan.hpp"

namespace poise {

// What a family's rotary embeddings may differ in from config.json's keys.
struct RopeOptions {
  float theta = 10000;
  bool partial = false;      // follows partial_rotary_factor
  std::string_view su = {};  // the type that "su" and "yarn" mean; empty: themselves
  std::int64_t original_positions =
      0;  // what a missing original_max_position_embeddings means; 0: max_position_embeddings
};

// By how much yarn scales attention where nothing else is said: 1 + 0.1 scale ln(factor).
double yarn_attention(double factor, double scale = 1);

// How often the frequencies turn within the original positions between which yarn blends, where nothing else is said.
inline constexpr double kYarnBetaFast = 32;
inline constexpr double kYarnBetaSlow = 1;

// The object with the scaling; null: there is none.
const Attributes* rope_scaling(const ConfigView& view);

// Throws unsupported for what cannot be followed, and invalid_file for what makes no sense.
RopePlan rope_plan(const ConfigView& view, const Attributes* scaling, const RopeOptions& options);

}  // namespace poise
