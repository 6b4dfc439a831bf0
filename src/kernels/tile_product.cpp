// Products of several tokens on a matrix unit.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include <oneapi/tbb/cache_aligned_allocator.h>

#include "kernels/stored_type.hpp"
#include "kernels/tile_panel.hpp"

namespace poise {
namespace {

constexpr std::size_t kPanelsTogether = 4;           // they take turns with the x of some tokens while that is near
constexpr std::size_t kRowStride = kTileBlock + 32;  // a power of two as row distance would cause cache conflicts
constexpr std::size_t kPanelSums = kTileTokens * kTileRows;
static_assert(kTileBlock == kCodeBlock && kTileRows % kPairedRows == 0);

// How weights become tiles.
struct TileWeights {
  explicit TileWeights(const StoredRows& rows) : matrix(rows), form(stored_type(rows).tiles) {
    step = panel_step(rows, kMostStep);
    if (step == 0 && form == TileForm::codes) form = TileForm::two_parts;
  }
  bool are_codes() const { return form == TileForm::codes; }
  std::size_t parts() const { return form == TileForm::three_parts ? 3 : form == TileForm::two_parts ? 2 : 1; }
  std::size_t parts_of_x() const {
    return form == TileForm::codes ? 0 : form == TileForm::rounded ? 1 : form == TileForm::three_parts ? 3 : 2;
  }
  const CodeForm& panels() const { return stored_type(matrix).kernels().panels; }
  // What is taken off each code: no code is then larger than 128.
  std::int32_t taken() const { return panels().offset == 0 && panels().largest > 128 ? 128 : panels().offset; }

  const StoredRows& matrix;
  TileForm form;
  std::size_t step;  // columns of a panel of codes that share a scale; 0: they become no panel
};

template <class T>
using Aligned = std::vector<T, tbb::cache_aligned_allocator<T>>;

// A block of the columns of kTileRows rows, as tiles.
struct TilePanel {
  // Rows [first, last), from a column on. Missing rows keep old numbers: a row's sums depend on that row only.
  void take(const TileWeights& weights, std::size_t first, std::size_t last, std::size_t column) {
    const std::size_t count = std::min(kTileBlock, weights.matrix.columns - column);
    if (weights.are_codes()) {
      // One scale, which is not used, for all columns.
      expand(weights, {first, last, column, count, count, nullptr, nullptr, nullptr});
    } else if (weights.form == TileForm::rounded && weights.step > 0) {
      reserve(1);
      round_codes(expand(weights, {first, last, column, count, weights.step, nullptr, nullptr, nullptr}),
                  weights.panels(), parts[0].data());
      pad(count);
    } else {
      reserve(weights.parts());
      for (std::size_t r = first; r < last; r += kPairedRows)
        take_rows(weights, r, std::min(r + kPairedRows, last), column, count, 2 * (r - first));
    }
  }

  Aligned<std::uint8_t> codes;                                    // [kTileBlock / 4, kTileRows, 4]
  std::array<Aligned<std::uint16_t>, kMostTileParts> parts = {};  // each [kTileBlock / 2, kTileRows, 2]

 private:
  static constexpr std::size_t kNumbers = kTileRows * kTileBlock;

  void reserve(std::size_t count) {
    for (std::size_t p = 0; p < count; ++p) {
      if (parts[p].empty()) parts[p].resize(kNumbers);
    }
  }

  CodePart expand(const TileWeights& weights, CodePart part) {
    thread_local Aligned<float> scales(kNumbers / kLeastStep);
    thread_local Aligned<float> mins(kNumbers / kLeastStep);
    if (codes.empty()) codes.resize(kNumbers);
    part.codes = codes.data();
    part.scales = scales.data();
    part.mins = mins.data();
    weights.panels().expand(weights.matrix, part);
    // It asks for the next columns itself, and at their end for rows that are taken already.
    if (part.begin + part.count == weights.matrix.columns) {
      for (std::size_t r = part.first; r < part.last; ++r) prefetch_next(weights.matrix, r, part.begin, part.count);
    }
    return part;
  }

  static std::size_t whole_tiles(std::size_t columns) {
    return (columns + kTileColumns - 1) / kTileColumns * kTileColumns;
  }
  void pad(std::size_t columns) {
    std::fill(parts[0].data() + columns * kTileRows, parts[0].data() + whole_tiles(columns) * kTileRows, 0);
  }

  // What is taken after these columns of a row: the next ones or, at its end, those of the row that takes its place.
  static void prefetch_next(const StoredRows& matrix, std::size_t row, std::size_t column, std::size_t count) {
    const bool is_last = column + count == matrix.columns;
    const std::size_t next =
        is_last ? (row + kPanelsTogether * kTileRows) * matrix.columns : row * matrix.columns + column + count;
    const std::byte* const from = matrix.data + stored_bytes(matrix, next);
    for (std::uint64_t i = 0; i < stored_bytes(matrix, count); i += 64) __builtin_prefetch(from + i, 0, 2);
  }

  // Up to kPairedRows rows, to `place` of each pair of columns.
  void take_rows(const TileWeights& weights, std::size_t first, std::size_t last, std::size_t column, std::size_t count,
                 std::size_t place) {
    thread_local Aligned<float> floats(kTileBlock);
    thread_local std::array<Aligned<std::uint16_t>, kMostTileParts> rows = {
        Aligned<std::uint16_t>(kPairedRows * kRowStride), Aligned<std::uint16_t>(kPairedRows * kRowStride),
        Aligned<std::uint16_t>(kPairedRows * kRowStride)};
    const StoredRows& matrix = weights.matrix;
    const auto split = stored_type(matrix).kernels().split;
    const std::size_t columns = whole_tiles(count);
    for (std::size_t r = first; r < last; ++r) {
      std::uint16_t* places[kMostTileParts];
      for (std::size_t p = 0; p < kMostTileParts; ++p) places[p] = rows[p].data() + (r - first) * kRowStride;
      if (split != nullptr) {
        split(matrix, {r, column, count, places});
        for (std::size_t p = 0; p < weights.parts(); ++p) std::fill(places[p] + count, places[p] + columns, 0);
      } else {
        decode_part(matrix, {r, r + 1, column, count, floats.data(), kTileBlock});
        std::fill(floats.data() + count, floats.data() + columns, 0.0F);
        split_floats(floats.data(), columns, std::span(places).first(weights.parts()));
      }
      prefetch_next(matrix, r, column, count);
    }
    for (std::size_t p = 0; p < weights.parts(); ++p)
      put_pairs(rows[p].data(), kRowStride, columns, parts[p].data() + place);
  }
};

// The panels of a thread and the sums of their rows, [panels, tokens, kTileRows]. A thread keeps their memory.
struct TilePanels {
  static TilePanels& of_thread() {
    thread_local TilePanels panels;
    return panels;
  }

  std::array<TilePanel, kPanelsTogether> panels;
  Aligned<float> sums;
};

void add_code_products(const TilePanel& panel, const KernelInput& in, std::size_t g, std::size_t block, float* sums) {
  const TileLayout& layout = in.tiles();
  const std::size_t columns = layout.columns_of(block);
  const std::byte* const x = in.tile_group(g, block);
  const auto* const upper = reinterpret_cast<const std::int8_t*>(x);
  alignas(64) std::int32_t upper_sums[kPanelSums];
  alignas(64) std::int32_t lower_sums[kPanelSums];
  multiply_code_tiles({panel.codes.data(), upper, upper + columns * kTileTokens, columns}, upper_sums, lower_sums);
  add_code_sums(upper_sums, lower_sums, in.code_factors(g, block), std::min(kTileTokens, in.tokens() - g * kTileTokens),
                sums);
}

void add_number_products(const TilePanel& panel, const TileWeights& weights, const KernelInput& in, std::size_t g,
                         std::size_t block, float* sums) {
  const TileLayout& layout = in.tiles();
  TileBlock tiles = {.columns = layout.columns_of(block)};
  if (g + 1 < TileLayout::groups(in.tokens())) tiles.next = layout.group_bytes(block) / sizeof(std::uint16_t);
  const auto* const x = reinterpret_cast<const std::uint16_t*>(in.tile_group(g, block));
  for (std::size_t p = 0; p < layout.parts; ++p) tiles.x[p] = x + p * tiles.columns * kTileTokens;
  for (std::size_t p = 0; p < weights.parts(); ++p) tiles.weights[p] = panel.parts[p].data();
  multiply_tiles(tiles, sums);
}

// Codes times their scale, and what is added to each.
void put_code_rows(const TileWeights& weights, const KernelInput& in, const float* sums, std::size_t rows, float* y,
                   std::size_t stride) {
  const StoredRows& matrix = weights.matrix;
  const float min = matrix.offset + static_cast<float>(weights.taken() - weights.panels().offset) * matrix.scale;
  for (std::size_t t = 0; t < in.tokens(); ++t) {
    float sum_of_x = 0;
    for (std::size_t b = 0; b < in.blocks(); ++b) sum_of_x += in.code_factors(t / kTileTokens, b).sums[t % kTileTokens];
    const float added = min == 0 ? 0 : min * sum_of_x;
    for (std::size_t i = 0; i < rows; ++i) y[t * stride + i] = matrix.scale * sums[t * kTileRows + i] + added;
  }
}

}  // namespace

TileLayout tile_layout(const StoredRows& matrix) {
  const TileWeights weights(matrix);
  return {matrix.columns, weights.parts_of_x(), weights.are_codes() ? weights.taken() : 0};
}

void multiply_tiled_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y,
                         std::size_t stride) {
  auto& [panels, sums] = TilePanels::of_thread();
  const TileWeights weights(matrix);
  const std::size_t groups = TileLayout::groups(in.tokens());
  const std::size_t at_once = weights.are_codes() ? 1 : 2;  // groups
  sums.resize(std::max(sums.size(), kPanelsTogether * groups * kPanelSums));
  const TileScope scope(in.tokens());
  for (std::size_t r = first; r < last; r += kPanelsTogether * kTileRows) {
    const std::size_t end = std::min(r + kPanelsTogether * kTileRows, last);
    std::fill_n(sums.begin(), kPanelsTogether * groups * kPanelSums, 0.0F);
    for (std::size_t b = 0; b < in.blocks(); ++b) {
      for (std::size_t from = r; from < end; from += kTileRows)
        panels[(from - r) / kTileRows].take(weights, from, std::min(from + kTileRows, end), b * kTileBlock);
      for (std::size_t g = 0; g < groups; g += at_once) {
        for (std::size_t p = 0; p < (end - r + kTileRows - 1) / kTileRows; ++p) {
          float* const to = sums.data() + (p * groups + g) * kPanelSums;
          if (weights.are_codes()) {
            add_code_products(panels[p], in, g, b, to);
          } else {
            add_number_products(panels[p], weights, in, g, b, to);
          }
        }
      }
    }
    for (std::size_t from = r; from < end; from += kTileRows) {
      const float* const of_panel = sums.data() + (from - r) / kTileRows * groups * kPanelSums;
      const std::size_t rows = std::min(kTileRows, end - from);
      if (weights.are_codes()) {
        put_code_rows(weights, in, of_panel, rows, y + from, stride);
      } else {
        for (std::size_t t = 0; t < in.tokens(); ++t)
          std::copy_n(of_panel + t * kTileRows, rows, y + t * stride + from);
      }
    }
  }
}

}  // namespace poise
