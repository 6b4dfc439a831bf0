#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/stored_type.hpp"
#include "kernels/tiles.hpp"

namespace poise {
namespace {

constexpr std::size_t kBlock = KernelInput::kFloatBlock;
constexpr std::size_t kStride = kBlock + 32;  // a power of two as row distance would cause cache conflicts
constexpr std::size_t kSums = kTileRows * kTileTokens;
static_assert(kTileTokens == KernelInput::kTogether && kBlock % kTileColumns == 0);

// The matrix for summing products: codes that only need a factor are whole numbers, exact in bfloat16, and the sums are
// multiplied by the factor.
struct Unscaled {
  explicit Unscaled(const StoredRows& matrix) : rows(matrix), form(stored_type(matrix).tiles) {
    if (form != TileForm::codes) return;
    if (matrix.offset != 0) {
      form = TileForm::two_parts;
      return;
    }
    factor = matrix.scale;
    rows.scale = 1;
  }
  std::size_t parts() const { return form == TileForm::three_parts ? 3 : form == TileForm::two_parts ? 2 : 1; }

  StoredRows rows;
  TileForm form;
  float factor = 1;
};

// A block of the weights of kTileRows rows as tiles, and the rows' sums [tokens / kTileTokens, kTileRows, kTileTokens].
// Each thread keeps the memory.
class TilePanel {
 public:
  static TilePanel& of_thread() {
    thread_local TilePanel panel;
    return panel;
  }

  void begin(std::size_t groups) {
    if (sums_.size() < groups * kSums) sums_.resize(groups * kSums);
    std::fill_n(sums_.begin(), groups * kSums, 0.0F);
  }

  // Rows [first, last), from a column on; pads columns to a whole tile with zeros. Missing rows keep old numbers: a
  // row's sums depend on that row only.
  void take(const Unscaled& weights, std::size_t first, std::size_t last, std::size_t column) {
    const StoredRows& matrix = weights.rows;
    const std::size_t count = std::min(kBlock, matrix.columns - column);
    columns_ = (count + kTileColumns - 1) / kTileColumns * kTileColumns;
    for (std::size_t r = first; r < last; ++r) {
      const std::size_t place = (r - first) * kStride;
      if (weights.form == TileForm::stored) {
        std::uint16_t* const numbers = parts_[0].data() + place;
        std::memcpy(numbers, matrix.data + sizeof(std::uint16_t) * (r * matrix.columns + column),
                    sizeof(std::uint16_t) * count);
        std::fill(numbers + count, numbers + columns_, std::uint16_t{0});
      } else {
        decode_part(matrix, {r, r + 1, column, count, floats_.data(), kBlock});
        std::fill(floats_.data() + count, floats_.data() + columns_, 0.0F);
        std::uint16_t* const parts[kMostTileParts] = {parts_[0].data() + place, parts_[1].data() + place,
                                                      parts_[2].data() + place};
        split_floats(floats_.data(), columns_, std::span(parts).first(weights.parts()));
      }
    }
  }

  void multiply(std::size_t parts, const KernelInput& in, std::size_t group, std::size_t block) {
    TileBlock tiles = {.stride = kStride,
                       .x = in.parts(group, block),
                       .columns = columns_,
                       .tokens = std::min(kTileTokens, in.tokens() - group * kTileTokens)};
    for (std::size_t p = 0; p < parts; ++p) tiles.weights[p] = parts_[p].data();
    multiply_tiles(tiles, sums_.data() + group * kSums);
  }

  // Of a token, row r at [r * kTileTokens].
  const float* sums(std::size_t token) const {
    return sums_.data() + token / kTileTokens * kSums + token % kTileTokens;
  }

 private:
  std::vector<float> floats_ = std::vector<float>(kBlock);
  std::array<TileNumbers, kMostTileParts> parts_ = {TileNumbers(kTileRows * kStride), TileNumbers(kTileRows* kStride),
                                                    TileNumbers(kTileRows* kStride)};
  std::vector<float> sums_;
  std::size_t columns_ = 0;
};

}  // namespace

void multiply_tiled_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& in, float* y,
                         std::size_t stride) {
  TilePanel& panel = TilePanel::of_thread();
  const Unscaled weights(matrix);
  const TileScope scope;
  for (std::size_t r = first; r < last; r += kTileRows) {
    const std::size_t end = std::min(r + kTileRows, last);
    panel.begin(in.groups());
    for (std::size_t b = 0; b < in.blocks(); ++b) {
      panel.take(weights, r, end, b * kBlock);
      for (std::size_t g = 0; g < in.groups(); ++g) panel.multiply(weights.parts(), in, g, b);
    }
    for (std::size_t t = 0; t < in.tokens(); ++t) {
      const float* sums = panel.sums(t);
      for (std::size_t i = r; i < end; ++i) y[t * stride + i] = weights.factor * sums[(i - r) * kTileTokens];
    }
  }
}

}  // namespace poise
