// Factors of rotary embeddings: llama.cpp divides each frequency by one, and has them as tensors. transformers computes
// them from `rope_scaling`, of kind llama3, or has them there as lists, of kind longrope.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <poise/value.hpp>

namespace poise::gguf {

// Half of a head's rotating elements each; empty: there are none.
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
// Null: no such tensor.
const RopeFactorRow* rope_factor_row(std::string_view gguf);
std::span<const RopeFactorRow> rope_factor_rows();

// What rope_scaling of the kind llama3 makes of the frequencies theta^(-2 i / rotating); empty where its numbers make
// none.
std::vector<float> llama3_factors(const Attributes& scaling, double theta, std::uint64_t rotating);

// rope_scaling that says the same as rope_freqs.weight: that of Llama 3.1 to 3.3 where that is what it is, else a
// longrope with one list for all contexts. Nothing for factors of 1.
std::optional<Attributes> scaling_of(const std::vector<float>& factors, double theta, std::uint64_t positions);

// By how much longrope scales attention for a model of so many positions, made from one of so many.
double longrope_attention(double positions, double original);

Value list_of(const std::vector<float>& numbers);
// Empty for anything but a list of numbers.
std::vector<float> floats_in(const Value* list);

}  // namespace poise::gguf
