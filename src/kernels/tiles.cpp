#include "kernels/tiles.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "bytes/platform.hpp"
#include "kernels/tile_instructions.hpp"

#if POISE_HAS_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace poise {
namespace {

static_assert(kTileRows == 2 * kRowsOfTile && kTileTokens == kRowsOfTile && 2 * kTileColumns == kBytesOfRow &&
              kTileBytes == kBytesOfRow);

constexpr std::size_t kSumsOfTile = kRowsOfTile * kSumsOfRow;
static_assert(kTileSums == 2 * kSumsOfTile);

// Describes a pair to multiply: a part of the weights and a part of x. If both have three parts, kPairsOfThree
// has the pairs, smallest products first.
struct TilePair {
  std::size_t weights;
  std::size_t x;
};
constexpr std::array<TilePair, 6> kPairsOfThree = {{{0, 2}, {1, 1}, {2, 0}, {0, 1}, {1, 0}, {0, 0}}};

// Multiplies bfloat16 numbers. Tiles 0 and 1 hold the sums of the upper and the lower rows with the first group of
// tokens; with kWide, tiles 2 and 3 hold those with the next group. Tiles 4 and 5 hold weights of the upper and the
// lower rows, 6 and 7 the x of both groups: four loads for four products. A tile is loaded right before the first
// product that reads it.
template <class Unit, bool kWide>
struct NumberTiles {
  const TileBlock& block;
  std::size_t place = 0;  // where in x the current tokens begin, in numbers

  template <bool kLower>
  POISE_AMX void load_weights(const std::uint16_t* weights, std::size_t column) const {
    Unit::template load<kLower ? 5 : 4>(weights + (kLower ? kRowsOfTile * block.stride : 0) + column, 2 * block.stride);
  }
  template <bool kNext>
  POISE_AMX void load_x(const std::uint16_t* x, std::size_t column) const {
    Unit::template load<kNext ? 7 : 6>(x + place + (kNext ? block.step : 0) + column * kTileTokens, kBytesOfRow);
  }
  POISE_AMX void multiply(const std::uint16_t* weights, const std::uint16_t* x, std::size_t column) const {
    load_weights<false>(weights, column);
    load_x<false>(x, column);
    Unit::template multiply_bfloat16<0, 4, 6>();
    if constexpr (kWide) {
      load_x<true>(x, column);
      Unit::template multiply_bfloat16<2, 4, 7>();
    }
    load_weights<true>(weights, column);
    Unit::template multiply_bfloat16<1, 5, 6>();
    if constexpr (kWide) Unit::template multiply_bfloat16<3, 5, 7>();
  }
  // Multiplies x by the weights in tiles 4 and 5.
  POISE_AMX void multiply_loaded_weights(const std::uint16_t* x, std::size_t column) const {
    load_x<false>(x, column);
    Unit::template multiply_bfloat16<0, 4, 6>();
    Unit::template multiply_bfloat16<1, 5, 6>();
    if constexpr (kWide) {
      load_x<true>(x, column);
      Unit::template multiply_bfloat16<2, 4, 7>();
      Unit::template multiply_bfloat16<3, 5, 7>();
    }
  }
  // Multiplies weights by the x in tiles 6 and 7.
  POISE_AMX void multiply_loaded_x(const std::uint16_t* weights, std::size_t column) const {
    load_weights<false>(weights, column);
    Unit::template multiply_bfloat16<0, 4, 6>();
    if constexpr (kWide) Unit::template multiply_bfloat16<2, 4, 7>();
    load_weights<true>(weights, column);
    Unit::template multiply_bfloat16<1, 5, 6>();
    if constexpr (kWide) Unit::template multiply_bfloat16<3, 5, 7>();
  }

  POISE_AMX void add_products() const {
    if (block.x[2] != nullptr) {
      for (const TilePair& pair : kPairsOfThree) add_one_part(block.weights[pair.weights], block.x[pair.x]);
    } else if (block.x[1] != nullptr) {
      add_two_parts();
    } else {
      add_one_part(block.weights[0], block.x[0]);
    }
  }

  POISE_AMX void begin_sums(const float* sums) const {
    begin<0>(sums);
    begin<1>(sums + find_lower_offset());
    if constexpr (kWide) {
      begin<2>(sums + block.group_step);
      begin<3>(sums + block.group_step + find_lower_offset());
    }
  }
  // Stores the sums, and begins those of the next tokens. Each tile is loaded again right after it is stored.
  POISE_AMX void end_sums(float* sums, const float* next) const {
    end<0>(sums, next, 0);
    if constexpr (kWide) end<2>(sums, next, block.group_step);
    end<1>(sums, next, find_lower_offset());
    if constexpr (kWide) end<3>(sums, next, block.group_step + find_lower_offset());
  }

 private:
  // Adds the products of one part of the weights and one part of x.
  POISE_AMX void add_one_part(const std::uint16_t* weights, const std::uint16_t* x) const {
    for (std::size_t i = 0; i < block.columns; i += kTileColumns) multiply(weights, x, i);
  }
  // Adds the products of two parts of x with one or two parts of weights, except the product of both second parts.
  POISE_AMX void add_two_parts() const {
    for (std::size_t i = 0; i < block.columns; i += kTileColumns) {
      multiply(block.weights[0], block.x[1], i);
      multiply_loaded_weights(block.x[0], i);
      if (block.weights[1] != nullptr) multiply_loaded_x(block.weights[1], i);
    }
  }

  // Returns the distance, in float32 numbers, from the sums of the upper rows to those of the lower rows.
  POISE_AMX std::size_t find_lower_offset() const { return kRowsOfTile * block.row_step; }

  template <int kTile>
  POISE_AMX void begin(const float* sums) const {
    block.is_first ? Unit::template clear<kTile>() : Unit::template load<kTile>(sums, 4 * block.row_step);
  }
  template <int kTile>
  POISE_AMX void end(float* sums, const float* next, std::size_t at) const {
    Unit::template store<kTile>(sums + at, 4 * block.row_step);
    if (next != nullptr) begin<kTile>(next + at);
  }
};

template <class Unit, bool kWide>
POISE_AMX void add_groups(const TileBlock& block, std::size_t first, std::size_t last, float* sums) {
  constexpr std::size_t kGroups = kWide ? 2 : 1;
  NumberTiles<Unit, kWide> tiles = {block, first * block.step};
  const std::size_t step = kGroups * block.group_step;
  sums += first * block.group_step;
  tiles.begin_sums(sums);
  for (std::size_t g = first; g < last; g += kGroups, sums += step) {
    tiles.add_products();
    tiles.end_sums(sums, g + kGroups < last ? sums + step : nullptr);
    tiles.place += kGroups * block.step;
  }
}

template <class Unit>
void add_numbers(const TileBlock& block, float* sums) {
  const std::size_t pairs = block.groups / 2 * 2;
  if (pairs > 0) add_groups<Unit, true>(block, 0, pairs, sums);
  if (pairs < block.groups) add_groups<Unit, false>(block, pairs, block.groups, sums);
}

// Multiplies codes by integers. Tiles 0 and 1 hold the sums of the upper and the lower rows with the upper bytes of x,
// 2 and 3 those with the lower bytes. Tiles 4 and 5 hold codes of the upper and the lower rows, 6 and 7 the upper and
// the lower bytes of x.
template <class Unit>
POISE_AMX void sum_codes(const CodeTiles& block, std::int32_t* upper_sums, std::int32_t* lower_sums) {
  Unit::template clear<0>();
  Unit::template clear<1>();
  Unit::template clear<2>();
  Unit::template clear<3>();
  for (std::size_t i = 0; i < block.columns; i += kTileBytes) {
    Unit::template load<4>(block.codes + i, block.stride);
    Unit::template load<6>(block.upper + i * kTileTokens, kBytesOfRow);
    Unit::template multiply_bytes<0, 4, 6>();
    Unit::template load<7>(block.lower + i * kTileTokens, kBytesOfRow);
    Unit::template multiply_bytes<2, 4, 7>();
    Unit::template load<5>(block.codes + kRowsOfTile * block.stride + i, block.stride);
    Unit::template multiply_bytes<1, 5, 6>();
    Unit::template multiply_bytes<3, 5, 7>();
  }
  Unit::template store<0>(upper_sums, kBytesOfRow);
  Unit::template store<1>(upper_sums + kSumsOfTile, kBytesOfRow);
  Unit::template store<2>(lower_sums, kBytesOfRow);
  Unit::template store<3>(lower_sums + kSumsOfTile, kBytesOfRow);
}

// Multiplies codes in the order for vectors. Tiles 0 and 1 hold the sums of both halves of the rows, 4 the x of tokens,
// 6 and 7 the codes of both halves. With kTwo, tiles 2, 3 and 5 hold the sums and x for the next columns. A product
// waits for the previous one in the same tile, so two pairs of tiles alternate.
template <class Unit, bool kTwo>
POISE_AMX void sum_panel(const PanelTiles& panel, std::int32_t* sums) {
  Unit::template clear<0>();
  Unit::template clear<1>();
  if constexpr (kTwo) {
    Unit::template clear<2>();
    Unit::template clear<3>();
  }
  for (std::size_t i = 0; i < panel.columns; i += kTileBytes) {
    const std::uint8_t* codes = panel.codes + i * kTileRows;
    Unit::template load<4>(panel.x + i, panel.columns);
    Unit::template load<6>(codes, 4 * kTileRows);
    Unit::template multiply_signed_bytes<0, 4, 6>();
    Unit::template load<7>(codes + kBytesOfRow, 4 * kTileRows);
    Unit::template multiply_signed_bytes<1, 4, 7>();
    if constexpr (kTwo) {
      codes += panel.columns * kTileRows;
      Unit::template load<5>(panel.x + panel.next + i, panel.columns);
      Unit::template load<6>(codes, 4 * kTileRows);
      Unit::template multiply_signed_bytes<2, 5, 6>();
      Unit::template load<7>(codes + kBytesOfRow, 4 * kTileRows);
      Unit::template multiply_signed_bytes<3, 5, 7>();
    }
  }
  Unit::template store<0>(sums, kBytesOfRow);
  Unit::template store<1>(sums + kSumsOfTile, kBytesOfRow);
  if constexpr (kTwo) {
    Unit::template store<2>(sums + 2 * kSumsOfTile, kBytesOfRow);
    Unit::template store<3>(sums + 3 * kSumsOfTile, kBytesOfRow);
  }
}

template <class Unit>
void sum_panels(const PanelTiles& panel, std::int32_t* sums) {
  panel.next == 0 ? sum_panel<Unit, false>(panel, sums) : sum_panel<Unit, true>(panel, sums);
}

#if POISE_HAS_AMX

// Returns true if the processor has tiles and the instructions that multiply them, and the system saves tiles on thread
// switches.
bool processor_has_tiles() {
  constexpr unsigned kXsaveEnabled = 1U << 27U;
  constexpr unsigned kTileState = 3U << 17U;  // bits of XCR0: shapes and contents of tiles
  constexpr unsigned kTilesAndProducts =
      1U << 24U | 1U << 22U | 1U << 25U;  // tiles, and their products of bfloat16 and of bytes
  if ((Cpuid(1, 0).ecx & kXsaveEnabled) == 0 || (Cpuid(7, 0).edx & kTilesAndProducts) != kTilesAndProducts)
    return false;
  unsigned low = 0;
  unsigned high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & kTileState) != kTileState) return false;
  const Cpuid palette(0x1d, 1);
  return palette.ebx >> 16U >= kTiles && (palette.ebx & 0xffffU) == kBytesOfRow &&
         (palette.ecx & 0xffffU) == kRowsOfTile;
}

// Asks Linux to let this process use tiles, whose 8 KiB it then saves for each thread
// (Documentation/arch/x86/xstate.rst). Returns true if Linux permits it.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileContents = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileContents) == 0;
}

constexpr std::size_t kFirstColumns = 2 * kTileBytes;

// Returns the sums that `multiply` computes on one unit.
template <class Unit, class Sum, class Multiply>
std::vector<Sum> compute_first_sums(Multiply&& multiply) {
  std::vector<Sum> sums(2 * kTileSums, Sum{3});
  Unit::begin();
  multiply(sums.data());
  Unit::end();
  return sums;
}

// Returns true if AmxTiles and PlainTiles have equal results for small whole numbers, whose sums are exact in any
// order.
bool are_first_numbers_right() {
  const auto numbers = [](std::size_t count, unsigned step) {
    std::vector<std::uint16_t> bits(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto number = static_cast<float>(static_cast<int>(i * step % 23) - 11);
      bits[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16U);
    }
    return bits;
  };
  const std::array weights = {numbers(kTileRows * kFirstColumns, 5), numbers(kTileRows * kFirstColumns, 7),
                              numbers(kTileRows * kFirstColumns, 3)};
  constexpr std::size_t kNext = kTileTokens * kFirstColumns;
  const std::array x = {numbers(2 * kNext, 9), numbers(2 * kNext, 13), numbers(2 * kNext, 11)};
  constexpr std::array<TilePair, 4> kForms = {{{1, 1}, {1, 2}, {2, 2}, {3, 3}}};
  for (const TilePair& parts : kForms) {
    for (const std::size_t groups : {std::size_t{1}, std::size_t{2}}) {
      for (const bool is_first : {true, false}) {
        TileBlock block = {
            .stride = kFirstColumns, .groups = groups, .step = kNext, .columns = kFirstColumns, .is_first = is_first};
        for (std::size_t p = 0; p < parts.weights; ++p) block.weights[p] = weights[p].data();
        for (std::size_t p = 0; p < parts.x; ++p) block.x[p] = x[p].data();
        if (compute_first_sums<AmxTiles, float>([&](float* sums) { add_numbers<AmxTiles>(block, sums); }) !=
            compute_first_sums<PlainTiles, float>([&](float* sums) { add_numbers<PlainTiles>(block, sums); }))
          return false;
      }
    }
  }
  return true;
}

// Returns true if AmxTiles and PlainTiles have equal results for codes and x in which every value of a byte occurs.
bool are_first_codes_right() {
  std::vector<std::uint8_t> codes(kTileRows * kFirstColumns);
  std::vector<std::int8_t> x(2 * kTileTokens * kFirstColumns);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i * 37);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int8_t>(i * 29);
  const CodeTiles block = {codes.data(), kFirstColumns, x.data(), x.data() + x.size() / 2, kFirstColumns};
  const auto multiply = [&](auto unit) {
    return compute_first_sums<decltype(unit), std::int32_t>(
        [&](std::int32_t* sums) { sum_codes<decltype(unit)>(block, sums, sums + kTileSums); });
  };
  if (multiply(AmxTiles()) != multiply(PlainTiles())) return false;
  for (const std::size_t next : {std::size_t{0}, x.size() / 2}) {
    const PanelTiles panel = {codes.data(), x.data(), kFirstColumns / 2, next};
    const auto multiply_panel = [&](auto unit) {
      return compute_first_sums<decltype(unit), std::int32_t>(
          [&](std::int32_t* sums) { sum_panels<decltype(unit)>(panel, sums); });
    };
    if (multiply_panel(AmxTiles()) != multiply_panel(PlainTiles())) return false;
  }
  return true;
}

TileUnit find_best_tile_unit() {
  return processor_has_tiles() && request_tiles() && are_first_numbers_right() && are_first_codes_right()
             ? TileUnit::amx
             : TileUnit::none;
}

#else

using AmxTiles = PlainTiles;
TileUnit find_best_tile_unit() { return TileUnit::none; }

#endif

TileUnit& get_chosen_unit() {
  static TileUnit unit = find_best_tile_unit();
  return unit;
}

}  // namespace

TileUnit get_tile_unit() { return get_chosen_unit(); }
void choose_tile_unit(TileUnit unit) { get_chosen_unit() = unit; }

TileScope::TileScope() { get_tile_unit() == TileUnit::amx ? AmxTiles::begin() : PlainTiles::begin(); }

TileScope::~TileScope() { get_tile_unit() == TileUnit::amx ? AmxTiles::end() : PlainTiles::end(); }

void multiply_tiles(const TileBlock& block, float* sums) {
  const auto add = get_tile_unit() == TileUnit::amx ? add_numbers<AmxTiles> : add_numbers<PlainTiles>;
  if (block.x[2] == nullptr || block.is_first) return add(block, sums);
  alignas(64) std::array<float, 2 * kTileSums> of_block;
  TileBlock apart = block;
  apart.is_first = true;
  for (std::size_t g = 0; g < block.groups; g += 2) {
    apart.groups = std::min<std::size_t>(2, block.groups - g);
    add(apart, of_block.data());
    const std::size_t count = apart.groups * kTileSums;
    for (std::size_t i = 0; i < count; ++i) sums[i] += of_block[i];
    sums += count;
    for (const std::uint16_t*& x : apart.x) {
      if (x != nullptr) x += 2 * block.step;
    }
  }
}

void multiply_code_tiles(const CodeTiles& block, std::int32_t* upper_sums, std::int32_t* lower_sums) {
  if (get_tile_unit() == TileUnit::amx) return sum_codes<AmxTiles>(block, upper_sums, lower_sums);
  sum_codes<PlainTiles>(block, upper_sums, lower_sums);
}

void multiply_panel_tiles(const PanelTiles& panel, std::int32_t* sums) {
  if (get_tile_unit() == TileUnit::amx) return sum_panels<AmxTiles>(panel, sums);
  sum_panels<PlainTiles>(panel, sums);
}

void keep_tiles_awake() {
  if (get_tile_unit() == TileUnit::amx) AmxTiles::multiply_bytes<3, 5, 7>();
}

TileCounts get_tile_counts() { return PlainTiles::counts(); }

}  // namespace poise
