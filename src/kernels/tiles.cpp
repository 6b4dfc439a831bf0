#include "kernels/tiles.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#if defined(__x86_64__) && defined(__linux__)
#define POISE_HAS_AMX 1
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#define POISE_HAS_AMX 0
#endif

#include "bytes/cpuid.hpp"

namespace poise {
namespace {

constexpr std::size_t kRegisterRows = 16;    // of a tile
constexpr std::size_t kRegisterBytes = 64;   // of a row of a tile
constexpr std::size_t kRegisterTokens = 16;  // float32 sums in a row of a tile
static_assert(kTileRows == 2 * kRegisterRows && kTileTokens == 2 * kRegisterTokens &&
              2 * kTileColumns == kRegisterBytes);

float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }

// The pairs of parts of weights and x to multiply, for three of each, smallest products first.
struct TilePair {
  std::size_t weights;
  std::size_t x;
};
constexpr std::array<TilePair, 6> kPairsOfThree = {{{0, 2}, {1, 1}, {2, 0}, {0, 1}, {1, 0}, {0, 0}}};

// One of the sums of products that make one of whole numbers.
void add_plainly(const TileBlock& block, const std::uint16_t* weights, const std::uint16_t* x, float* sums) {
  std::vector<float> tokens_of_columns(block.columns * kTileTokens);
  for (std::size_t i = 0; i < block.columns; ++i) {
    for (std::size_t t = 0; t < kTileTokens; ++t)
      tokens_of_columns[i * kTileTokens + t] = from_bfloat16(x[(i / 2 * kTileTokens + t) * 2 + i % 2]);
  }
  const std::size_t tokens = block.tokens <= kRegisterTokens ? kRegisterTokens : kTileTokens;
  for (std::size_t r = 0; r < kTileRows; ++r) {
    for (std::size_t i = 0; i < block.columns; ++i) {
      const float weight = from_bfloat16(weights[r * block.stride + i]);
      for (std::size_t t = 0; t < tokens; ++t)
        sums[r * kTileTokens + t] += weight * tokens_of_columns[i * kTileTokens + t];
    }
  }
}

void multiply_plainly(const TileBlock& block, float* sums) {
  if (block.x[2] != nullptr) {
    for (const TilePair& pair : kPairsOfThree) add_plainly(block, block.weights[pair.weights], block.x[pair.x], sums);
    return;
  }
  add_plainly(block, block.weights[0], block.x[1], sums);
  add_plainly(block, block.weights[0], block.x[0], sums);
  if (block.weights[1] != nullptr) add_plainly(block, block.weights[1], block.x[0], sums);
}

#if POISE_HAS_AMX

// Input of LDTILECFG: all eight tiles have full size.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t first_row = 0;
  std::array<std::uint8_t, 14> reserved = {};
  std::array<std::uint16_t, 16> row_bytes = {64, 64, 64, 64, 64, 64, 64, 64};
  std::array<std::uint8_t, 16> rows = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileShapes) == 64);
constinit const TileShapes kShapes;

#define POISE_AMX __attribute__((target("amx-tile,amx-bf16")))

POISE_AMX void begin_tiles() { _tile_loadconfig(&kShapes); }
POISE_AMX void end_tiles() { _tile_release(); }

constexpr std::size_t kPairBytes = 2 * sizeof(std::uint16_t) * kTileTokens;

// Adds the products of two or of one part of the weights with two of x.
template <bool kWide>
POISE_AMX void add_two_parts(const TileBlock& block) {
  const std::size_t weight_bytes = sizeof(std::uint16_t) * block.stride;
  const auto [high, low, none] = block.weights;
  for (std::size_t i = 0; i < block.columns; i += kTileColumns) {
    _tile_loadd(4, high + i, weight_bytes);
    _tile_loadd(5, high + kRegisterRows * block.stride + i, weight_bytes);
    for (const std::uint16_t* part : {block.x[1], block.x[0]}) {
      const std::uint16_t* const x = part + i * kTileTokens;
      _tile_loadd(6, x, kPairBytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kWide) {
        _tile_loadd(7, x + 2 * kRegisterTokens, kPairBytes);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
    if (low == nullptr) continue;
    _tile_loadd(4, low + i, weight_bytes);
    _tile_loadd(5, low + kRegisterRows * block.stride + i, weight_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (kWide) {
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
}

// Adds the products of one part of the weights with one of x.
template <bool kWide>
POISE_AMX void add_one_part(const TileBlock& block, const std::uint16_t* weights, const std::uint16_t* x) {
  const std::size_t weight_bytes = sizeof(std::uint16_t) * block.stride;
  for (std::size_t i = 0; i < block.columns; i += kTileColumns) {
    _tile_loadd(4, weights + i, weight_bytes);
    _tile_loadd(5, weights + kRegisterRows * block.stride + i, weight_bytes);
    _tile_loadd(6, x + i * kTileTokens, kPairBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (kWide) {
      _tile_loadd(7, x + i * kTileTokens + 2 * kRegisterTokens, kPairBytes);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
}

// Tiles 0 to 3 hold the sums: of the upper and of the lower rows, for the first tokens and (kWide) for the others.
// Tiles 4 and 5 hold weights of the upper and the lower rows, 6 and 7 x of the first tokens and the others.
template <bool kWide>
POISE_AMX void multiply_tokens(const TileBlock& block, float* sums) {
  constexpr std::size_t kSumBytes = sizeof(float) * kTileTokens;
  float* const lower_sums = sums + kRegisterRows * kTileTokens;
  asm volatile("" ::: "memory");  // the compiler does not know that tiles are loaded from memory
  _tile_loadd(0, sums, kSumBytes);
  _tile_loadd(2, lower_sums, kSumBytes);
  if constexpr (kWide) {
    _tile_loadd(1, sums + kRegisterTokens, kSumBytes);
    _tile_loadd(3, lower_sums + kRegisterTokens, kSumBytes);
  }
  if (block.x[2] == nullptr) {
    add_two_parts<kWide>(block);
  } else {
    for (const TilePair& pair : kPairsOfThree) add_one_part<kWide>(block, block.weights[pair.weights], block.x[pair.x]);
  }
  _tile_stored(0, sums, kSumBytes);
  _tile_stored(2, lower_sums, kSumBytes);
  if constexpr (kWide) {
    _tile_stored(1, sums + kRegisterTokens, kSumBytes);
    _tile_stored(3, lower_sums + kRegisterTokens, kSumBytes);
  }
}

void multiply_on_unit(const TileBlock& block, float* sums) {
  if (block.tokens <= kRegisterTokens) return multiply_tokens<false>(block, sums);
  multiply_tokens<true>(block, sums);
}

// True if the processor has tiles and their bfloat16 products, and the system saves them on thread switches.
bool processor_has_tiles() {
  constexpr unsigned kXsaveEnabled = 1U << 27U;
  constexpr unsigned kTileState = 3U << 17U;  // of XCR0: shapes and contents
  constexpr unsigned kTiles = 1U << 24U | 1U << 22U;
  if ((Cpuid(1, 0).ecx & kXsaveEnabled) == 0 || (Cpuid(7, 0).edx & kTiles) != kTiles) return false;
  unsigned low = 0;
  unsigned high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & kTileState) != kTileState) return false;
  const Cpuid palette(0x1d, 1);
  return palette.ebx >> 16U >= 8 && (palette.ebx & 0xffffU) == kRegisterBytes &&
         (palette.ecx & 0xffffU) == kRegisterRows;
}

// Linux gives the tiles' 8 KiB of state to processes that ask for it (Documentation/arch/x86/xstate.rst).
bool system_grants_tiles() {
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileContents = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileContents) == 0;
}

// Small whole numbers, with exact sums in any order.
bool first_product_is_right() {
  constexpr std::size_t kColumns = 2 * kTileColumns;
  const auto numbers = [](std::size_t count, unsigned step) {
    std::vector<std::uint16_t> bits(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto number = static_cast<float>(static_cast<int>(i * step % 23) - 11);
      bits[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16U);
    }
    return bits;
  };
  const std::array weights = {numbers(kTileRows * kColumns, 5), numbers(kTileRows * kColumns, 7),
                              numbers(kTileRows * kColumns, 3)};
  const std::array x = {numbers(kTileTokens * kColumns, 9), numbers(kTileTokens * kColumns, 13),
                        numbers(kTileTokens * kColumns, 11)};
  for (std::size_t parts = 1; parts <= kMostTileParts; ++parts) {
    for (const std::size_t tokens : {kTileTokens, kRegisterTokens}) {
      TileBlock block = {.stride = kColumns, .columns = kColumns, .tokens = tokens};
      for (std::size_t p = 0; p < parts; ++p) block.weights[p] = weights[p].data();
      for (std::size_t p = 0; p < std::max<std::size_t>(parts, 2); ++p) block.x[p] = x[p].data();
      std::vector<float> expected(kTileRows * kTileTokens);
      std::vector<float> sums(kTileRows * kTileTokens);
      multiply_plainly(block, expected.data());
      begin_tiles();
      multiply_on_unit(block, sums.data());
      end_tiles();
      if (sums != expected) return false;
    }
  }
  return true;
}

TileUnit best_unit() {
  return processor_has_tiles() && system_grants_tiles() && first_product_is_right() ? TileUnit::amx : TileUnit::none;
}

#else

void begin_tiles() {}
void end_tiles() {}
void multiply_on_unit(const TileBlock& block, float* sums) { multiply_plainly(block, sums); }
TileUnit best_unit() { return TileUnit::none; }

#endif

TileUnit& chosen_unit() {
  static TileUnit unit = best_unit();
  return unit;
}

}  // namespace

TileUnit tile_unit() { return chosen_unit(); }
void choose_tile_unit(TileUnit unit) { chosen_unit() = unit; }

TileScope::TileScope() {
  if (tile_unit() == TileUnit::amx) begin_tiles();
}

TileScope::~TileScope() {
  if (tile_unit() == TileUnit::amx) end_tiles();
}

void multiply_tiles(const TileBlock& block, float* sums) {
  const auto multiply = tile_unit() == TileUnit::amx ? multiply_on_unit : multiply_plainly;
  if (block.x[2] == nullptr) return multiply(block, sums);
  alignas(64) std::array<float, kTileRows* kTileTokens> of_block = {};
  multiply(block, of_block.data());
  for (std::size_t i = 0; i < of_block.size(); ++i) sums[i] += of_block[i];
}

}  // namespace poise
