#include <poise/stored_type.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace poise {
namespace {

struct Spelling {
  ScaleRule scale;
  std::string_view suffix;
};
constexpr std::array<Spelling, 3> kSpellings = {{
    {ScaleRule::largest, ""},
    {ScaleRule::range, ":range"},
    {ScaleRule::least_squares, ":mse"},
}};

bool is_storable(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::qint8 || dtype == DType::qint4; }

}  // namespace

std::optional<StoredType> stored_type_from_name(std::string_view name) {
  const std::size_t colon = std::min(name.find(':'), name.size());
  const auto dtype = dtype_from_name(name.substr(0, colon));
  if (!dtype || !is_storable(*dtype)) return std::nullopt;
  for (const Spelling& spelling : kSpellings) {
    const StoredType type{*dtype, spelling.scale};
    if (spelling.suffix == name.substr(colon) && (type.quantized() || type.scale == ScaleRule::largest)) return type;
  }
  return std::nullopt;
}

std::string to_string(const StoredType& type) {
  const auto spelling = std::ranges::find(kSpellings, type.scale, &Spelling::scale);
  return std::string(to_string(type.dtype)) + std::string(type.quantized() ? spelling->suffix : "");
}

void QuantizationError::merge(const QuantizationError& other) {
  values += other.values;
  worst = std::max(worst, other.worst);
  squared_error += other.squared_error;
  squared_values += other.squared_values;
}

double QuantizationError::rms() const { return values == 0 ? 0 : std::sqrt(squared_error / static_cast<double>(values)); }

double QuantizationError::signal_to_noise_db() const {
  if (squared_error == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(squared_values / squared_error);
}

}  // namespace poise
