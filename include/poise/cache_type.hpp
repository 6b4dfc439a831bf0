// CacheType chooses how a session keeps the keys and values of its text (docs/quantization.md).
//
//   poise::Session session(model, {.cache = poise::CacheType::q8});
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace poise {

// Names the type of the numbers in a cache.
enum class CacheType : std::uint8_t {
  f32,  // the numbers are not rounded
  f16,  // half the memory; numbers beyond 65504 are an error
  q8,   // 8-bit codes, with a float32 scale for each 32 numbers of a head: 28 % of the memory of f32
};

// Returns "f32", "f16" or "q8".
std::string_view to_string(CacheType type);
// Returns the type of that name; std::nullopt for other names.
std::optional<CacheType> cache_type_from_name(std::string_view name);

}  // namespace poise
