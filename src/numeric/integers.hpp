// Handles integers whose type is known only at run time.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include <poise/dtype.hpp>
#include <poise/error.hpp>

#include "bytes/little_endian.hpp"

namespace poise {

// Calls `use` with a zero of the type: visit_integer(DType::u16, [](auto zero) { using T = decltype(zero); ... }).
// Requires: an integer type.
template <typename Use>
decltype(auto) visit_integer(DType dtype, Use&& use) {
  switch (dtype) {
    case DType::i64: return use(std::int64_t{});
    case DType::i32: return use(std::int32_t{});
    case DType::i16: return use(std::int16_t{});
    case DType::i8: return use(std::int8_t{});
    case DType::u64: return use(std::uint64_t{});
    case DType::u32: return use(std::uint32_t{});
    case DType::u16: return use(std::uint16_t{});
    case DType::u8: return use(std::uint8_t{});
    default: throw Error(ErrorKind::internal, "the element type is not an integer type");
  }
}

}  // namespace poise
