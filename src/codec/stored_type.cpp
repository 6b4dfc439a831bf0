#include <poise/stored_type.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "codec/block_type.hpp"

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

constexpr std::string_view kGroupName = "group";

bool is_storable(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::qint8 ||
         dtype == DType::qint4;
}

// Parses "4", "8" or "4:64", the text after "group".
std::optional<StoredType> parse_group_type(std::string_view name) {
  if (name.empty() || (name.front() != '4' && name.front() != '8')) return std::nullopt;
  StoredType type{DType::i32, ScaleRule::largest, {name.front() == '4' ? 4U : 8U}};
  if (name.size() == 1) return type;
  const auto [stop, error] = std::from_chars(name.data() + 2, name.data() + name.size(), type.groups.size);
  const bool whole = name.size() > 2 && name[1] == ':' && error == std::errc() && stop == name.data() + name.size();
  if (!whole || !is_group_size(type.groups)) return std::nullopt;
  return type;
}

}  // namespace

bool is_group_size(const Groups& groups) {
  return groups.size > 0 && groups.size % (32 / groups.bits) == 0 && groups.size <= kMaxGroupSize;
}

std::optional<StoredType> stored_type_from_name(std::string_view name) {
  if (const BlockType* blocks = find_named_block_type(name)) {
    return blocks->encode == nullptr ? std::nullopt
                                     : std::optional(StoredType{.dtype = DType::u8, .blocks = blocks->name});
  }
  if (name.starts_with(kGroupName)) return parse_group_type(name.substr(kGroupName.size()));
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
  if (!type.blocks.empty()) return std::string(type.blocks);
  if (type.grouped()) return fmt::format("{}{}:{}", kGroupName, type.groups.bits, type.groups.size);
  const auto spelling = std::ranges::find(kSpellings, type.scale, &Spelling::scale);
  return std::string(to_string(type.dtype)) + std::string(type.quantized() ? spelling->suffix : "");
}

void QuantizationError::merge(const QuantizationError& other) {
  values += other.values;
  worst = std::max(worst, other.worst);
  squared_error += other.squared_error;
  squared_values += other.squared_values;
}

double QuantizationError::rms() const {
  return values == 0 ? 0 : std::sqrt(squared_error / static_cast<double>(values));
}

double QuantizationError::signal_to_noise_db() const {
  if (squared_error == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(squared_values / squared_error);
}

}  // namespace poise
