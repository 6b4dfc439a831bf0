#include "kernels/cache_type.hpp"

#include <algorithm>
#include <cstring>

#include "numeric/cast_kernels.hpp"

namespace poise {
namespace {

std::size_t copy_floats(const float* numbers, std::size_t size, std::byte* codes, float* /*scales*/) {
  std::memcpy(codes, numbers, size * sizeof(float));
  return size;
}

std::size_t convert_to_halves(const float* numbers, std::size_t size, std::byte* codes, float* /*scales*/) {
  CastStats stats;
  return narrow_f16(numbers, reinterpret_cast<std::uint16_t*>(codes), size, stats);
}

std::size_t convert_to_codes(const float* numbers, std::size_t size, std::byte* codes, float* scales) {
  encode_q8(numbers, size, reinterpret_cast<std::int8_t*>(codes), scales);
  return size;
}

constexpr CacheTypeRow kCacheTypes[] = {
    {CacheType::f32, "f32", DType::f32, 0, copy_floats, get_f32_cache_kernels},
    {CacheType::f16, "f16", DType::f16, 0, convert_to_halves, get_f16_cache_kernels},
    {CacheType::q8, "q8", DType::i8, kCodeGroup, convert_to_codes, get_q8_cache_kernels},
};

}  // namespace

std::span<const CacheTypeRow> list_cache_types() { return kCacheTypes; }

const CacheTypeRow& find_cache_type_row(CacheType type) {
  return *std::ranges::find(kCacheTypes, type, &CacheTypeRow::type);
}

std::string_view to_string(CacheType type) { return find_cache_type_row(type).name; }

std::optional<CacheType> cache_type_from_name(std::string_view name) {
  const auto* const row = std::ranges::find(kCacheTypes, name, &CacheTypeRow::name);
  if (row == std::end(kCacheTypes)) return std::nullopt;
  return row->type;
}

}  // namespace poise
