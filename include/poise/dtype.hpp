// DType names the element types that Poise knows; each is a row of dtype.def.
//
//   std::cout << poise::info(poise::DType::bf16).bits << "\n";  // 16
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace poise {

enum class DType : std::uint8_t {
#define POISE_DTYPE(name, ...) name,
#include <poise/dtype.def>
#undef POISE_DTYPE
  unknown,  // a type that Poise does not know: it lists and copies such parts, but does not decode them
};

enum class DTypeKind : std::uint8_t { floating, signed_integer, unsigned_integer, boolean, complex, quantized };

// Describes an element type: a row of dtype.def.
struct DTypeInfo {
  DType dtype;
  std::string_view name;  // "f32", "bool", ...
  unsigned bits;          // of one element, packed without gaps
  DTypeKind kind;
};

// Returns the row of a type. Requires: dtype is not `unknown` (throws internal).
const DTypeInfo& info(DType dtype);

// Returns the name, such as "f32"; "unknown" for DType::unknown.
std::string_view to_string(DType dtype);

// Returns the type with that name ("f16"); std::nullopt for other names.
std::optional<DType> dtype_from_name(std::string_view name);

// Returns true for floating-point types of real numbers.
bool is_floating(DType dtype);
// Returns true for integers with or without a sign.
bool is_integer(DType dtype);

}  // namespace poise
