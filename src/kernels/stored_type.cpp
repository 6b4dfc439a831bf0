#include "kernels/product_kernels.hpp"

#include <array>

namespace poise {

namespace {

struct NamedRow {
  Storage storage;
  StoredTypeRow row;
};

// The rows are in the order of Storage. Its last value, `blocks`, has no row.
constexpr std::array kTypes = {
    NamedRow{Storage::f32, {32, 0, 0, TileForm::three_parts, get_f32_kernels}},
    NamedRow{Storage::f16, {16, 0, 0, TileForm::two_parts, get_f16_kernels}},
    NamedRow{Storage::bf16, {16, 0, 0, TileForm::stored, get_bf16_kernels}},
    NamedRow{Storage::i8, {8, 2, 0, TileForm::codes, get_i8_kernels}},
    NamedRow{Storage::u8, {8, 2, 0, TileForm::codes, get_u8_kernels}},
    NamedRow{Storage::i4, {4, 4, 0, TileForm::codes, get_i4_kernels}},
    NamedRow{Storage::u4, {4, 4, 0, TileForm::codes, get_u4_kernels}},
    NamedRow{Storage::i4_bytes, {8, 2, 0, TileForm::codes, get_i4_bytes_kernels}},
    NamedRow{Storage::u4_bytes, {8, 2, 0, TileForm::codes, get_u4_bytes_kernels}},
    NamedRow{Storage::group8, {8, 2, 0, TileForm::rounded, get_group8_kernels, 2}},
    NamedRow{Storage::group4, {4, 4, 0, TileForm::rounded, get_group4_kernels, 2}},
    NamedRow{Storage::mx4, {4, 2, 0, TileForm::rounded, get_mx4_kernels, 1}},
    NamedRow{Storage::scaled8, {8, 0, 0, TileForm::rounded, get_scaled8_kernels, 4}},
    NamedRow{Storage::scaled4, {4, 0, 0, TileForm::rounded, get_scaled4_kernels, 4}},
    NamedRow{Storage::codebook4, {4, 0, 0, TileForm::rounded, get_codebook4_kernels, 4}},
    NamedRow{Storage::scaled_f8_e4m3, {8, 0, 0, TileForm::rounded, get_scaled_f8_e4m3_kernels, 4}},
    NamedRow{Storage::scaled_f8_e5m2, {8, 0, 0, TileForm::rounded, get_scaled_f8_e5m2_kernels, 4}},
    NamedRow{Storage::by_column8, {8, 0, 0, TileForm::rounded, get_by_column8_kernels, 4}},
    NamedRow{Storage::by_column4, {4, 0, 0, TileForm::rounded, get_by_column4_kernels, 4}},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].storage != static_cast<Storage>(i)) return false;
  }
  return true;
}
static_assert(is_in_order());

}  // namespace

const StoredTypeRow& find_stored_type(const StoredRows& matrix) {
  if (matrix.blocks != nullptr) return find_stored_block_type(*matrix.blocks);
  return kTypes.at(static_cast<std::size_t>(matrix.storage)).row;
}

}  // namespace poise
