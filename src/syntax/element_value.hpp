// Converts an element of a tensor to a plain value, because some checkpoints store settings as tensors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <poise/dtype.hpp>
#include <poise/value.hpp>

namespace poise {

// Returns a number, a boolean, or [real, imaginary] for complex numbers; std::nullopt for other types (f4_e2m1,
// f8_e8m0, qint8, qint4, unknown), and if `bytes` are not those of one element.
std::optional<Value> read_element(DType dtype, std::span<const std::byte> bytes);

// Converts a value of any kind of number to double; integers above 2^53 are rounded. Returns std::nullopt if the value
// is absent or has another kind.
inline std::optional<double> convert_to_double(const Value* value) {
  if (value == nullptr) return std::nullopt;
  if (const auto* real = value->get_if<double>()) return *real;
  if (const auto* positive = value->get_if<std::uint64_t>()) return static_cast<double>(*positive);
  if (const auto* negative = value->get_if<std::int64_t>()) return static_cast<double>(*negative);
  return std::nullopt;
}

// Returns true if both maps have the same keys and values, in any order.
inline bool have_same_entries(const Attributes& a, const Attributes& b) {
  return a.size() == b.size() && std::ranges::all_of(a, [&](const Attributes::Entry& entry) {
           const Value* other = b.find(entry.first);
           return other != nullptr && *other == entry.second;
         });
}

}  // namespace poise
