// StoredType names the storage of a tensor's elements: floating-point numbers, codes with one scale per tensor, codes
// with a scale and a zero point per group, or ggml's blocks.
//
//   const std::optional<poise::StoredType> type = poise::stored_type_from_name("group4:128");
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <poise/dtype.hpp>

namespace poise {

// Chooses the range of numbers that a tensor's codes can represent (docs/formats/alt.md).
enum class ScaleRule : std::uint8_t {
  largest,        // symmetric, the largest magnitude gets the largest code: no value is clipped
  range,          // covers the smallest to the largest value: unsigned codes
  least_squares,  // symmetric, clipped where the squared error is least
};

// Describes groups: neighbours in a row that share a scale and a zero point. value = (code - zero) * scale; zero and
// scale are float16, codes unsigned (zTensor 1.1's quantized_group).
struct Groups {
  unsigned bits = 0;  // 4 or 8; 0: no groups
  // The number of codes in a group. Quantization halves it until it divides the length of the rows.
  std::uint64_t size = 128;
  friend bool operator==(const Groups&, const Groups&) = default;
};

// Returns true for sizes that groups can have: whole 32-bit words of codes, up to 2^20 codes. Requires: bits is 4 or 8.
bool is_group_size(const Groups& groups);

struct StoredType {
  DType dtype = DType::f32;  // f32, f16, bf16, qint8 or qint4; i32 for groups, the type of their words; u8 for blocks
  ScaleRule scale = ScaleRule::largest;  // how the scales of qint8 and qint4 are chosen
  Groups groups = {};
  std::string_view blocks = {};  // ggml's name, in static memory: "q4_k"; empty: none

  bool grouped() const { return groups.bits != 0; }
  bool quantized() const { return grouped() || !blocks.empty() || dtype == DType::qint8 || dtype == DType::qint4; }
  friend bool operator==(const StoredType&, const StoredType&) = default;
};

// Parses "f16", "qint8", "qint4:range", "qint8:mse", "group4", "group8:64", "q4_k". Returns std::nullopt for other
// texts, and for blocks that Poise cannot encode.
std::optional<StoredType> stored_type_from_name(std::string_view name);
// Returns the text that stored_type_from_name() parses.
std::string to_string(const StoredType& type);

// Measures the loss of storing values as codes.
struct QuantizationError {
  std::uint64_t values = 0;
  double worst = 0;           // max |x - decoded|
  double squared_error = 0;   // sum of (x - decoded)^2
  double squared_values = 0;  // sum of x^2

  // Adds the values of another tensor, or of another part of this one.
  void merge(const QuantizationError& other);
  // Returns the root of the mean squared error; 0 without values.
  double rms() const;
  // Returns 10 log10(squared_values / squared_error); infinite without a loss.
  double signal_to_noise_db() const;
};

}  // namespace poise
