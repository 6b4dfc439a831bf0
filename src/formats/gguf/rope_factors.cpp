#include "formats/gguf/rope_factors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "numeric/shortest.hpp"
#include "syntax/value_number.hpp"

namespace poise::gguf {
namespace {

constexpr std::array kRows = std::to_array<RopeFactorRow>({
    {"rope_freqs.weight", &RopeFactors::every, true},
    {"rope_factors_long.weight", &RopeFactors::long_contexts, false},
    {"rope_factors_short.weight", &RopeFactors::short_contexts, false},
});

bool are_close(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) { return std::abs(x - y) <= 1e-4F * std::abs(y); });
}

}  // namespace

const RopeFactorRow* rope_factor_row(std::string_view gguf) {
  const auto* row = std::ranges::find(kRows, gguf, &RopeFactorRow::gguf);
  return row == kRows.end() ? nullptr : row;
}

std::span<const RopeFactorRow> rope_factor_rows() { return kRows; }

std::vector<float> llama3_factors(const Attributes& scaling, double theta, std::uint64_t rotating) {
  const auto factor = number(scaling.find("factor"));
  const auto low = number(scaling.find("low_freq_factor"));
  const auto high = number(scaling.find("high_freq_factor"));
  const auto original = number(scaling.find("original_max_position_embeddings"));
  if (!factor || !low || !high || !original || *factor <= 0 || *low <= 0 || *high <= *low || *original <= 0 ||
      theta <= 0)
    return {};
  std::vector<float> factors;
  for (std::uint64_t i = 0; i + 1 < rotating; i += 2) {
    const double wave = 2 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / static_cast<double>(rotating));
    // Turns within the original context, from those of long waves to those of short ones.
    const double turns = *original / wave;
    const double smooth = std::clamp((turns - *low) / (*high - *low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / ((1 - smooth) / *factor + smooth)));
  }
  return factors;
}

std::optional<Attributes> scaling_of(const std::vector<float>& factors, double theta, std::uint64_t positions) {
  if (factors.empty() || std::ranges::all_of(factors, [](float factor) { return factor == 1.0F; })) return std::nullopt;
  const Attributes llama3{{"rope_type", "llama3"},
                          {"factor", shortest(factors.back())},
                          {"low_freq_factor", 1.0},
                          {"high_freq_factor", 4.0},
                          {"original_max_position_embeddings", 8192}};
  if (are_close(llama3_factors(llama3, theta, factors.size() * 2), factors)) return llama3;
  return Attributes{{"rope_type", "longrope"},
                    {"long_factor", list_of(factors)},
                    {"short_factor", list_of(factors)},
                    {"attention_factor", 1.0},
                    {"original_max_position_embeddings", positions}};
}

double longrope_attention(double positions, double original) {
  const double scale = positions / original;
  return scale <= 1 || original <= 1 ? 1.0 : std::sqrt(1 + std::log(scale) / std::log(original));
}

Value list_of(const std::vector<float>& numbers) {
  Value::Array list;
  for (const float factor : numbers) list.emplace_back(shortest(factor));
  return list;
}

std::vector<float> floats_in(const Value* list) {
  const auto* items = list == nullptr ? nullptr : list->get_if<Value::Array>();
  if (items == nullptr) return {};
  std::vector<float> floats;
  for (const Value& item : *items) {
    const auto factor = number(&item);
    if (!factor) return {};
    floats.push_back(static_cast<float>(*factor));
  }
  return floats;
}

}  // namespace poise::gguf
