// Wraps the instructions of Intel's AMX in functions. AmxTiles runs them on the processor. PlainTiles emulates them in
// ordinary code on any machine, and counts loads, stores and products. Both have eight tiles of 16 rows of 64 bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__linux__)
#define POISE_HAS_AMX 1
// Marks functions that contain the instructions. The compiler adds none of its own.
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
inline constexpr std::size_t kTiles = 8;

// Emulates the instructions, for tests and to check a processor's first products. Each thread has tiles of its own.
class PlainTiles {
 public:
  static void begin() {}
  static void end() {}
  static TileCounts& counts() { return get_of_thread().counts_; }

  template <int kTile>
  static void clear() {
    get_of_thread().tiles_[kTile].fill(std::byte{0});
  }
  // The rows in memory are `stride` bytes apart, also for store().
  template <int kTile>
  static void load(const void* from, std::size_t stride) {
    PlainTiles& unit = get_of_thread();
    ++unit.counts_.loads;
    for (std::size_t r = 0; r < kRowsOfTile; ++r)
      std::memcpy(unit.tiles_[kTile].data() + r * kBytesOfRow, static_cast<const std::byte*>(from) + r * stride,
                  kBytesOfRow);
  }
  template <int kTile>
  static void store(void* to, std::size_t stride) {
    PlainTiles& unit = get_of_thread();
    ++unit.counts_.stores;
    for (std::size_t r = 0; r < kRowsOfTile; ++r)
      std::memcpy(static_cast<std::byte*>(to) + r * stride, unit.tiles_[kTile].data() + r * kBytesOfRow, kBytesOfRow);
  }
  // Adds to sum [m][n] the products of the 32 bfloat16 numbers in row m of the weights and 32 numbers of x: number 2 k
  // + i of the row is multiplied by number 2 n + i of row k of x.
  template <int kSums, int kWeights, int kX>
  static void multiply_bfloat16() {
    const auto number = [](std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16U); };
    multiply<float, std::uint16_t, std::uint16_t>(kSums, kWeights, kX, number);
  }
  // Adds to int32 sum [m][n] the products of the 64 unsigned bytes in row m of the weights and 64 signed bytes of x:
  // byte 4 k + i of the row is multiplied by byte 4 n + i of row k of x.
  template <int kSums, int kWeights, int kX>
  static void multiply_bytes() {
    const auto number = [](auto byte) { return static_cast<std::int32_t>(byte); };
    multiply<std::int32_t, std::uint8_t, std::int8_t>(kSums, kWeights, kX, number);
  }
  // Adds products as multiply_bytes() does, with the signed bytes of x as the first factor.
  template <int kSums, int kX, int kWeights>
  static void multiply_signed_bytes() {
    const auto number = [](auto byte) { return static_cast<std::int32_t>(byte); };
    multiply<std::int32_t, std::int8_t, std::uint8_t>(kSums, kX, kWeights, number);
  }

 private:
  using Tile = std::array<std::byte, kRowsOfTile * kBytesOfRow>;

  static PlainTiles& get_of_thread() {
    thread_local PlainTiles unit;
    return unit;
  }

  template <class Sum, class First, class Second, class Number>
  static void multiply(std::size_t sums, std::size_t first, std::size_t second, Number number) {
    constexpr std::size_t kTogether = sizeof(Sum) / sizeof(Second);  // columns in four bytes
    PlainTiles& unit = get_of_thread();
    ++unit.counts_.products;
    std::array<Second, kRowsOfTile * kBytesOfRow / sizeof(Second)> stored;
    std::memcpy(stored.data(), unit.tiles_[second].data(), sizeof stored);
    std::array<std::array<std::array<Sum, kSumsOfRow>, kTogether>, kRowsOfTile> of_columns;
    for (std::size_t i = 0; i < stored.size(); ++i)
      of_columns[i / kTogether / kSumsOfRow][i % kTogether][i / kTogether % kSumsOfRow] = number(stored[i]);
    for (std::size_t r = 0; r < kRowsOfTile; ++r) {
      std::array<Sum, kSumsOfRow> row;
      std::array<First, kBytesOfRow / sizeof(First)> of_row;
      std::memcpy(row.data(), unit.tiles_[sums].data() + r * kBytesOfRow, kBytesOfRow);
      std::memcpy(of_row.data(), unit.tiles_[first].data() + r * kBytesOfRow, kBytesOfRow);
      for (std::size_t i = 0; i < of_row.size(); ++i) {
        const Sum factor = number(of_row[i]);
        const auto& of_column = of_columns[i / kTogether][i % kTogether];
        for (std::size_t n = 0; n < kSumsOfRow; ++n) row[n] += factor * of_column[n];
      }
      std::memcpy(unit.tiles_[sums].data() + r * kBytesOfRow, row.data(), kBytesOfRow);
    }
  }

  std::array<Tile, kTiles> tiles_ = {};
  TileCounts counts_;
};

#if POISE_HAS_AMX

// Runs the instructions on the processor. They are inline assembly, because the compiler's functions for them accept
// only literal tile numbers, and the one for LDTILECFG does not declare that it reads all 64 bytes of its input.
class AmxTiles {
 public:
  POISE_AMX static void begin() {
    Shapes shapes;
    std::fill_n(shapes.row_bytes.begin(), kTiles, static_cast<std::uint16_t>(kBytesOfRow));
    std::fill_n(shapes.rows.begin(), kTiles, static_cast<std::uint8_t>(kRowsOfTile));
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
  template <int kSums, int kWeights, int kX>
  POISE_AMX static void multiply_bfloat16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kWeights), "i"(kX));
  }
  template <int kSums, int kWeights, int kX>
  POISE_AMX static void multiply_bytes() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kWeights), "i"(kX));
  }
  template <int kSums, int kX, int kWeights>
  POISE_AMX static void multiply_signed_bytes() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kX), "i"(kWeights));
  }

 private:
  // Holds the input of LDTILECFG.
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
