// Factors of rotary embeddings: llama.cpp divides each frequency by one, and stores them as tensors. transformers
// computes them from `rope_scaling` of type llama3, or lists them there for type longrope.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

namespace poise::gguf {

// One for each rotated pair of a head; empty if there are none.
struct RopeFactors {
  std::vector<float> every;           // rope_freqs.weight
  std::vector<float> long_contexts;   // rope_factors_long.weight
  std::vector<float> short_contexts;  // rope_factors_short.weight
};

struct RopeFactorRow {
  std::string_view gguf;  // the tensor
  std::vector<float> RopeFactors::*factors;
  bool for_any_context;
};
// Null if there is no such tensor.
const RopeFactorRow* rope_factor_row(std::string_view gguf);
std::span<const RopeFactorRow> rope_factor_rows();

// The factors of rope_scaling of type llama3 for the frequencies theta^(-2 i / rotating); empty for invalid numbers.
std::vector<float> llama3_factors(const Attributes& scaling, double theta, std::uint64_t rotating);

// The rope_scaling that is equivalent to rope_freqs.weight: that of Llama 3.1 to 3.3 if it matches, else a longrope
// with one list for all contexts. Nothing for factors of 1.
std::optional<Attributes> scaling_of(const std::vector<float>& factors, double theta, std::uint64_t positions);

// The attention scale of longrope for a model extended from `original` positions.
double longrope_attention(double positions, double original);

Value list_of(const std::vector<float>& numbers);
// Empty for anything else than a list of numbers.
std::vector<float> floats_in(const Value* list);

}  // namespace poise::gguf
