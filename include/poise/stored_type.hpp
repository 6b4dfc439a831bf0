// StoredType: how a tensor's elements are to be stored - as floating-point numbers, or as codes with one scale per tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <poise/dtype.hpp>

namespace poise {

// Where the codes of a quantized tensor end (formats.md section 1).
enum class ScaleRule : std::uint8_t {
  largest,        // symmetric, the largest magnitude gets the largest code: nothing is clipped
  range,          // from the smallest value to the largest: unsigned codes
  least_squares,  // symmetric, clipped where the squared error is least
};

struct StoredType {
  DType dtype = DType::f32;              // f32, f16, bf16, qint8 or qint4
  ScaleRule scale = ScaleRule::largest;  // of qint8 and qint4

  bool quantized() const { return dtype == DType::qint8 || dtype == DType::qint4; }
  friend bool operator==(const StoredType&, const StoredType&) = default;
};

// "f16", "qint8", "qint4:range", "qint8:mse".
std::optional<StoredType> stored_type_from_name(std::string_view name);
std::string to_string(const StoredType& type);

// What storing values as codes did to them.
struct QuantizationError {
  std::uint64_t values = 0;
  double worst = 0;           // max |x - decoded|
  double squared_error = 0;   // sum of (x - decoded)^2
  double squared_values = 0;  // sum of x^2

  void merge(const QuantizationError& other);
  double rms() const;  // of the error; 0 without values
  // 10 log10(squared_values / squared_error); infinite where nothing was lost.
  double signal_to_noise_db() const;
};

}  // namespace poise
