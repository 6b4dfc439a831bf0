// Multiplies several tokens on a matrix unit.
#include <algorithm>
#include <array>
#include <span>

#include "kernels/product_kernels.hpp"
#include "kernels/tile_layout.hpp"

namespace poise {
namespace {

// Rows of a panel are this far apart: in bfloat16 numbers, and in bytes (codes take a byte each).
constexpr std::size_t kRowStride = find_tile_row_stride(kTileBlock);
constexpr std::size_t kRowBytes = 2 * kRowStride;
static_assert(kRowBytes > kTileCodeBlock && kTileBlock % CodePart::kLargestBlock == 0);

// Describes how weights become tiles.
struct TileWeights {
  explicit TileWeights(const StoredRows& rows)
      : matrix(rows),
        kernels(find_stored_type(rows).kernels()),
        panels(kernels.panels),
        form(find_stored_type(rows).tiles),
        step(find_panel_step(rows, kMostStep)) {
    if (step == 0 && form == TileForm::codes) form = TileForm::two_parts;
  }
  bool are_codes() const { return form == TileForm::codes; }
  std::size_t block_columns() const { return are_codes() ? kTileCodeBlock : kTileBlock; }  // columns of a panel
  std::size_t count_parts() const { return form == TileForm::three_parts ? 3 : form == TileForm::two_parts ? 2 : 1; }
  std::size_t count_parts_of_x() const {
    return form == TileForm::codes ? 0 : form == TileForm::rounded ? 1 : form == TileForm::three_parts ? 3 : 2;
  }
  // Returns the number that is subtracted from each code: no code is then larger than 128.
  std::int32_t get_offset() const { return panels.offset == 0 && panels.largest > 128 ? 128 : panels.offset; }

  const StoredRows& matrix;
  const TypeKernels& kernels;
  const CodeForm& panels;
  TileForm form;
  std::size_t step;  // columns that share a scale in a panel of codes; 0: no panels of codes
};

// Holds a block of columns of kTileRows rows, in the form for tiles.
class TilePanel {
 public:
  // Loads a block of columns, which begins with `column`, of up to kTileRows rows. Missing rows keep old numbers. This
  // does no harm, because the sums of a row depend only on that row.
  void load(const TileWeights& weights, const IndexRange& rows, std::size_t column) {
    const std::size_t count = std::min(weights.block_columns(), weights.matrix.columns - column);
    CodePart part = {rows.first,    rows.last,      column,       count,     count,
                     codes_.data(), scales_.data(), mins_.data(), kRowBytes, &keep_tiles_awake};
    // All columns have one scale, which scale_sums() applies.
    if (weights.are_codes()) return weights.panels.expand(weights.matrix, part);
    if (weights.form == TileForm::rounded && weights.step > 0) {
      part.step = weights.step;
      round_codes(weights.matrix, part, weights.panels, parts_.data(), kRowStride);
      for (std::size_t r = 0; r < rows.size(); ++r) pad(parts_.data() + r * kRowStride, count);
      return;
    }
    for (std::size_t r = rows.first; r < rows.last; ++r) {
      if (r % 4 == 0) keep_tiles_awake();
      load_row(weights, r, r - rows.first, column, count);
    }
  }

  const std::uint8_t* get_codes() const { return codes_.data(); }
  const std::uint16_t* get_part(std::size_t p) const { return parts_.data() + p * kNumbers; }

 private:
  static constexpr std::size_t kNumbers = kTileRows * kRowStride;

  static std::size_t round_up_to_tiles(std::size_t columns) {
    return (columns + kTileColumns - 1) / kTileColumns * kTileColumns;
  }
  static void pad(std::uint16_t* row, std::size_t columns) {
    std::fill(row + columns, row + round_up_to_tiles(columns), 0);
  }

  void load_row(const TileWeights& weights, std::size_t row, std::size_t place, std::size_t column, std::size_t count) {
    std::uint16_t* places[kMostTileParts];
    for (std::size_t p = 0; p < kMostTileParts; ++p) places[p] = parts_.data() + p * kNumbers + place * kRowStride;
    if (weights.kernels.split != nullptr) {
      weights.kernels.split(weights.matrix, {row, column, count, places});
      for (std::size_t p = 0; p < weights.count_parts(); ++p) pad(places[p], count);
      return;
    }
    alignas(64) float numbers[kTileBlock];
    weights.kernels.decode(weights.matrix, {row, row + 1, column, count, numbers, kTileBlock});
    const std::size_t columns = round_up_to_tiles(count);
    std::fill(numbers + count, numbers + columns, 0.0F);
    split_floats(numbers, columns, std::span(places).first(weights.count_parts()));
  }

  AlignedVector<std::uint8_t> codes_ = AlignedVector<std::uint8_t>(kTileRows * kRowBytes);  // [kTileRows, kRowBytes]
  AlignedVector<std::uint16_t> parts_ =
      AlignedVector<std::uint16_t>(kMostTileParts * kNumbers);  // each [kTileRows, kRowStride]
  AlignedVector<float> scales_ = AlignedVector<float>(kTileRows * kTileCodeBlock / kLeastStep);
  AlignedVector<float> mins_ = AlignedVector<float>(kTileRows * kTileCodeBlock / kLeastStep);
};

void add_code_products(const TilePanel& panel, const KernelInput::Tiles& in, std::size_t g, std::size_t block,
                       float* sums) {
  const TileLayout& layout = in.layout;
  const std::size_t columns = layout.count_columns(block);
  const auto* const upper = reinterpret_cast<const std::int8_t*>(in.get_group(g, block));
  alignas(64) std::int32_t upper_sums[kTileSums];
  alignas(64) std::int32_t lower_sums[kTileSums];
  multiply_code_tiles({panel.get_codes(), kRowBytes, upper, upper + columns * kTileTokens, columns}, upper_sums,
                      lower_sums);
  add_code_sums(upper_sums, lower_sums, in.get_factors(g, block), block == 0, sums);
}

void add_number_products(const TilePanel& panel, const TileWeights& weights, const KernelInput::Tiles& in,
                         std::size_t block, float* sums) {
  const TileLayout& layout = in.layout;
  TileBlock tiles = {.stride = kRowStride,
                     .groups = TileLayout::count_groups(in.tokens),
                     .step = layout.count_group_bytes(block) / sizeof(std::uint16_t),
                     .columns = layout.count_columns(block),
                     .is_first = block == 0};
  const auto* const x = reinterpret_cast<const std::uint16_t*>(in.get_group(0, block));
  for (std::size_t p = 0; p < layout.parts; ++p) tiles.x[p] = x + p * tiles.columns * kTileTokens;
  for (std::size_t p = 0; p < weights.count_parts(); ++p) tiles.weights[p] = panel.get_part(p);
  multiply_tiles(tiles, sums);
}

// Returns, for each token of a group, `min` times the sum of its x: a weight is (code - weights.get_offset()) * scale +
// min.
std::array<float, kTileTokens> compute_code_addends(const TileWeights& weights, const KernelInput::Tiles& in,
                                                    std::size_t g) {
  const StoredRows& matrix = weights.matrix;
  const float min = matrix.offset + static_cast<float>(weights.get_offset() - weights.panels.offset) * matrix.scale;
  std::array<float, kTileTokens> added = {};
  for (std::size_t t = 0; min != 0 && t < kTileTokens; ++t) {
    for (std::size_t b = 0; b < in.layout.blocks(); ++b) added[t] += in.get_factors(g, b).sums[t];
    added[t] *= min;
  }
  return added;
}

// Multiplies rows on the matrix unit. Each thread has one object, and reuses its memory.
class TiledRows {
 public:
  static TiledRows& get_of_thread() {
    thread_local TiledRows rows;
    return rows;
  }

  struct Output {
    float* y;
    std::size_t stride;
  };

  void multiply(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Tiles& in,
                const Output& out) {
    const TileWeights weights(matrix);
    const std::size_t together = choose_tiled_rows(in.tokens);
    const std::size_t groups = TileLayout::count_groups(in.tokens);
    sums_.resize(std::max(sums_.size(), together / kTileRows * groups * kTileSums));
    const TileScope scope;
    for (std::size_t r = first; r < last; r += together)
      multiply_together(weights, {r, std::min(r + together, last)}, in, {out.y + (r - first), out.stride});
  }

 private:
  void multiply_together(const TileWeights& weights, const IndexRange& rows, const KernelInput::Tiles& in,
                         const Output& out) {
    const std::size_t groups = TileLayout::count_groups(in.tokens);
    for (std::size_t b = 0; b < in.layout.blocks(); ++b) {
      for (std::size_t row = rows.first; row < rows.last; row += kTileRows) {
        const IndexRange of_panel = {row, std::min(row + kTileRows, rows.last)};
        panel_.load(weights, of_panel, b * weights.block_columns());
        prefetch_next(weights, rows, row, b);
        float* const sums = get_sums(row - rows.first, 0, groups);
        if (weights.are_codes()) {
          for (std::size_t g = 0; g < groups; ++g) add_code_products(panel_, in, g, b, sums + g * kTileSums);
        } else {
          add_number_products(panel_, weights, in, b, sums);
        }
      }
    }
    for (std::size_t g = 0; g < groups; ++g) {
      const auto added = weights.are_codes() ? compute_code_addends(weights, in, g) : std::array<float, kTileTokens>();
      for (std::size_t row = rows.first; row < rows.last; row += kTileRows) {
        float* const sums = get_sums(row - rows.first, g, groups);
        if (weights.are_codes()) scale_sums(weights.matrix.scale, added.data(), sums);
        store_sums(sums, std::min(kTileRows, rows.last - row), std::min(kTileTokens, in.tokens - g * kTileTokens),
                   out.y + g * kTileTokens * out.stride + (row - rows.first), out.stride);
      }
    }
  }

  // Prefetches the panel that multiply_together() loads after the one of `row` and `block`. Usually it has the next
  // rows. After the last of `rows`, it has the first of them and the next block of columns. After the last block, it
  // has the rows that follow `rows`.
  static void prefetch_next(const TileWeights& weights, const IndexRange& rows, std::size_t row, std::size_t block) {
    const StoredRows& matrix = weights.matrix;
    std::size_t column = block * weights.block_columns();
    std::size_t first = row + kTileRows;
    if (first >= rows.last && column + weights.block_columns() < matrix.columns) {
      first = rows.first;
      column += weights.block_columns();
    } else if (first >= rows.last) {
      first = rows.last;
      column = 0;
    }
    const std::uint64_t row_bytes = count_element_bytes(matrix, matrix.columns);
    const std::uint64_t bytes = count_element_bytes(matrix, std::min(weights.block_columns(), matrix.columns - column));
    const std::byte* at = matrix.data + count_element_bytes(matrix, first * matrix.columns + column);
    for (std::size_t r = 0; r < kTileRows; ++r, at += row_bytes) {
      if (r % 16 == 0) keep_tiles_awake();
      for (std::uint64_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i, 0, 2);
    }
  }

  float* get_sums(std::size_t row, std::size_t g, std::size_t groups) {
    return sums_.data() + (row / kTileRows * groups + g) * kTileSums;
  }

  TilePanel panel_;
  AlignedVector<float> sums_;  // [panels, groups, kTileRows, kTileTokens]
};

}  // namespace

TileLayout make_tile_layout(const StoredRows& matrix) {
  const TileWeights weights(matrix);
  return {matrix.columns, weights.count_parts_of_x(), weights.are_codes() ? weights.get_offset() : 0};
}

void multiply_tiled_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Tiles& in,
                         float* y, std::size_t stride) {
  TiledRows::get_of_thread().multiply(matrix, first, last, in, {y, stride});
}

}  // namespace poise
