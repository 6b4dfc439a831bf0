// DType: the element types Poise knows, one row each of dtype.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace poise {

enum class DType : std::uint8_t {
#define POISE_DTYPE(name, ...) name,
#include <poise/dtype.def>
#undef POISE_DTYPE
  unknown,  // a type that a file names and Poise does not know: it can be listed, not loaded
};

enum class DTypeKind : std::uint8_t { floating, signed_integer, unsigned_integer, boolean, complex, quantized };

// One row of the table. An empty spelling, or alt == -1, means that the format has no such type.
struct DTypeInfo {
  DType dtype;
  std::string_view name;  // "f32", "bool", ...
  unsigned bits;          // of one element
  DTypeKind kind;
  std::string_view safetensors;
  int alt;
  std::string_view zt0;
  std::string_view zt1;
  std::string_view zt2;
  std::string_view zt2_type;
};

// Requires: dtype is not `unknown` (throws internal).
const DTypeInfo& info(DType dtype);

// "f32"; "unknown" for DType::unknown.
std::string_view to_string(DType dtype);

// The type with that name ("f16"), if there is one.
std::optional<DType> dtype_from_name(std::string_view name);

// The first row whose `column` equals `spelling`: dtype_from(&DTypeInfo::safetensors, "BF16").
std::optional<DType> dtype_from(std::string_view DTypeInfo::*column, std::string_view spelling);

// The type that zTensor 2 stores as `storage` with the logical type `logical` (empty: none).
std::optional<DType> dtype_from_storage(std::string_view storage, std::string_view logical);

bool is_floating(DType dtype);
bool is_integer(DType dtype);

}  // namespace poise
