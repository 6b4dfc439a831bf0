// The instructions of Intel's AMX as functions, a class for each way to run them: by the processor, or in ordinary code
// on any machine, which also counts them. Both have eight tiles of 16 rows of 64 bytes. The first six have as many rows
// as begin() says; they take x and sums, whose rows are tokens. The last two have all rows; they take weights.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__linux__)
#define POISE_HAS_AMX 1
// Of functions that run the instructions. It does not make the compiler emit them elsewhere in the function.
#define POISE_AMX __attribute__((target("amx-tile,amx-int8,amx-bf16")))
#else
#define POISE_HAS_AMX 0
#define POISE_AMX
#endif

#include "kernels/tiles.hpp"

namespace poise {

inline constexpr std::size_t kRowsOfTile = 16;
inline constexpr std::size_t kBytesOfRow = 64;
inline constexpr std::size_t kSumsOfRow = 16;  // float32 or int32
inline constexpr std::size_t kTilesOfTokens = 6;
inline constexpr std::size_t kTiles = 8;

// In ordinary code, for tests. Each thread has tiles of its own.
class PlainTiles {
 public:
  static void begin(std::size_t tokens) {
    for (std::size_t i = 0; i < kTiles; ++i) of_thread().rows_[i] = i < kTilesOfTokens ? tokens : kRowsOfTile;
  }
  static void end() {}
  static TileCounts& counts() { return of_thread().counts_; }

  template <int kTile>
  static void clear() {
    of_thread().tiles_[kTile].fill(std::byte{0});
  }
  // Rows are `stride` bytes apart, here and below.
  template <int kTile>
  static void load(const void* from, std::size_t stride) {
    PlainTiles& unit = of_thread();
    ++unit.counts_.loads;
    for (std::size_t r = 0; r < unit.rows_[kTile]; ++r)
      std::memcpy(unit.tiles_[kTile].data() + r * kBytesOfRow, static_cast<const std::byte*>(from) + r * stride,
                  kBytesOfRow);
  }
  template <int kTile>
  static void store(void* to, std::size_t stride) {
    PlainTiles& unit = of_thread();
    ++unit.counts_.stores;
    for (std::size_t r = 0; r < unit.rows_[kTile]; ++r)
      std::memcpy(static_cast<std::byte*>(to) + r * stride, unit.tiles_[kTile].data() + r * kBytesOfRow, kBytesOfRow);
  }
  // Adds to each float32 sum the products of two bfloat16 numbers in each of 16 rows of `weights`.
  template <int kSums, int kX, int kWeights>
  static void multiply_bfloat16() {
    const auto number = [](std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16U); };
    multiply<float, std::uint16_t, std::uint16_t>(kSums, kX, kWeights, number, number);
  }
  // Adds to each int32 sum the products of four bytes in each of 16 rows: of x with a sign, of weights without.
  template <int kSums, int kX, int kWeights>
  static void multiply_bytes() {
    const auto number = [](auto byte) { return static_cast<std::int32_t>(byte); };
    multiply<std::int32_t, std::int8_t, std::uint8_t>(kSums, kX, kWeights, number, number);
  }

 private:
  using Tile = std::array<std::byte, kRowsOfTile * kBytesOfRow>;

  static PlainTiles& of_thread() {
    thread_local PlainTiles unit;
    return unit;
  }

  template <class Sum, class X, class Weight, class OfX, class OfWeight>
  static void multiply(std::size_t sums, std::size_t x, std::size_t weights, OfX of_x, OfWeight of_weight) {
    constexpr std::size_t kTogether = sizeof(Sum) / sizeof(X);  // columns in four bytes
    PlainTiles& unit = of_thread();
    ++unit.counts_.products;
    std::array<Weight, kRowsOfTile * kBytesOfRow / sizeof(Weight)> stored;
    std::memcpy(stored.data(), unit.tiles_[weights].data(), sizeof stored);
    std::array<std::array<std::array<Sum, kSumsOfRow>, kTogether>, kRowsOfTile> of_columns;
    for (std::size_t i = 0; i < stored.size(); ++i)
      of_columns[i / kTogether / kSumsOfRow][i % kTogether][i / kTogether % kSumsOfRow] = of_weight(stored[i]);
    for (std::size_t t = 0; t < unit.rows_[sums]; ++t) {
      std::array<Sum, kSumsOfRow> row;
      std::array<X, kBytesOfRow / sizeof(X)> of_token;
      std::memcpy(row.data(), unit.tiles_[sums].data() + t * kBytesOfRow, kBytesOfRow);
      std::memcpy(of_token.data(), unit.tiles_[x].data() + t * kBytesOfRow, kBytesOfRow);
      for (std::size_t i = 0; i < of_token.size(); ++i) {
        const Sum factor = of_x(of_token[i]);
        const auto& weights_of_column = of_columns[i / kTogether][i % kTogether];
        for (std::size_t n = 0; n < kSumsOfRow; ++n) row[n] += factor * weights_of_column[n];
      }
      std::memcpy(unit.tiles_[sums].data() + t * kBytesOfRow, row.data(), kBytesOfRow);
    }
  }

  std::array<Tile, kTiles> tiles_ = {};
  std::array<std::size_t, kTiles> rows_ = {};
  TileCounts counts_;
};

#if POISE_HAS_AMX

// By the processor. (Instructions are written out: the compiler's functions for them take literals only, and do not say
// that they read the whole of a configuration.)
class AmxTiles {
 public:
  POISE_AMX static void begin(std::size_t tokens) {
    Shapes shapes;
    for (std::size_t i = 0; i < kTiles; ++i) {
      shapes.row_bytes[i] = kBytesOfRow;
      shapes.rows[i] = static_cast<std::uint8_t>(i < kTilesOfTokens ? tokens : kRowsOfTile);
    }
    asm volatile("ldtilecfg %0" ::"m"(shapes));
  }
  POISE_AMX static void end() { asm volatile("tilerelease"); }

  template <int kTile>
  POISE_AMX static void clear() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  template <int kTile>
  POISE_AMX static void load(const void* from, std::size_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  POISE_AMX static void store(void* to, std::size_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kSums, int kX, int kWeights>
  POISE_AMX static void multiply_bfloat16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kX), "i"(kWeights));
  }
  template <int kSums, int kX, int kWeights>
  POISE_AMX static void multiply_bytes() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kX), "i"(kWeights));
  }

 private:
  // Input of LDTILECFG.
  struct alignas(64) Shapes {
    std::uint8_t palette = 1;
    std::uint8_t first_row = 0;
    std::array<std::uint8_t, 14> reserved = {};
    std::array<std::uint16_t, 16> row_bytes = {};
    std::array<std::uint8_t, 16> rows = {};
  };
  static_assert(sizeof(Shapes) == 64);
};

#endif

}  // namespace poise
