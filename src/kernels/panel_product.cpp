// Multiplies many tokens in float32, a panel of rows at a time.
#include <algorithm>

#include "kernels/product_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/panel_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/vectors-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace poise::HWY_NAMESPACE {

using hn::MulAdd;

// Each lane of a vector belongs to a token. A panel (a block of columns of kPanelRows rows) is converted to float32,
// and then multiplied by all tokens.
constexpr std::size_t kTogether = KernelInput::kTogether;
constexpr std::size_t kBlock =
    KernelInput::kFloatBlock;                      // columns; a panel takes 64 KiB, the x of kTogether tokens 32 KiB
constexpr std::size_t kPanelStride = kBlock + 16;  // rows a power of two apart would cause cache conflicts
#if HWY_TARGET <= HWY_AVX3
constexpr std::size_t kSumRows = 12;  // for two vectors of tokens, the 24 sums fit 32 registers
#else
constexpr std::size_t kSumRows = 6;
#endif
static_assert(kPanelRows % kSumRows == 0);

// Adds the products of kSumRows rows of a panel with kVectors vectors of tokens to `sums` [kSumRows, kTogether].
template <std::size_t kVectors>
HWY_INLINE void MultiplyTile(const float* panel, const float* x, std::size_t columns, float* sums) {
  const std::size_t lanes = hn::Lanes(Floats());
  hn::Vec<Floats> sum[kSumRows][kVectors];
  HWY_UNROLL(12)
  for (std::size_t r = 0; r < kSumRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(Floats());
  }
  constexpr std::size_t kAhead = 8;  // columns: x then comes from the second-level cache into the first in time
  for (std::size_t i = 0; i < columns; ++i) {
    hn::Vec<Floats> in[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) {
      hwy::Prefetch(x + (i + kAhead) * kTogether + v * lanes);
      in[v] = Load(x + i * kTogether + v * lanes);
    }
    HWY_UNROLL(12)
    for (std::size_t r = 0; r < kSumRows; ++r) {
      const auto weight = hn::Set(Floats(), panel[r * kPanelStride + i]);
      for (std::size_t v = 0; v < kVectors; ++v) sum[r][v] = MulAdd(weight, in[v], sum[r][v]);
    }
  }
  HWY_UNROLL(12)
  for (std::size_t r = 0; r < kSumRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* const to = sums + r * kTogether + v * lanes;
      hn::StoreU(hn::Add(Load(to), sum[r][v]), Floats(), to);
    }
  }
}

// Holds a panel of float32 weights, and the sums of its rows: [groups of tokens, kPanelRows, kTogether]. Each thread
// has one, and reuses its memory.
struct Panel {
  static Panel& get_of_thread() {
    thread_local Panel panel;
    return panel;
  }

  void begin(std::size_t groups) {
    const std::size_t needed = groups * kPanelRows * kTogether;
    if (sums.size() < needed) sums.resize(needed);
    std::fill_n(sums.begin(), needed, 0.0F);
  }

  // Adds the products of `rows` rows with `tokens` tokens to `out`, kSumRows rows at a time. If the last rows are
  // fewer, also multiplies old weights in the places of the missing rows, whose sums no caller reads.
  void multiply(std::size_t rows, std::size_t columns, const float* x, std::size_t tokens, float* out) const {
    const std::size_t lanes = hn::Lanes(Floats());
    for (std::size_t r = 0; r < rows; r += kSumRows) {
      for (std::size_t t = 0; t < tokens; t += 2 * lanes) {
        const float* tile = weights.data() + r * kPanelStride;
        float* to = out + r * kTogether + t;
        if (t + lanes < tokens) {
          MultiplyTile<2>(tile, x + t, columns, to);
        } else {
          MultiplyTile<1>(tile, x + t, columns, to);
        }
      }
    }
  }

  AlignedFloats weights = AlignedFloats(kPanelRows * kPanelStride);
  AlignedFloats sums;
};

// Prefetches a block of columns, which begins with `column`, of rows [first, first + count).
void PrefetchBlock(const StoredRows& matrix, std::size_t first, std::size_t count, std::size_t column) {
  constexpr std::size_t kLine = 64;
  const std::uint64_t bytes = count_element_bytes(matrix, std::min(kBlock, matrix.columns - column));
  for (std::size_t r = first; r < first + count; ++r) {
    const std::byte* const row = matrix.data + count_element_bytes(matrix, r * matrix.columns + column);
    for (std::uint64_t i = 0; i < bytes; i += kLine) hwy::Prefetch(row + i);
  }
}

void MultiplyMany(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Floats& in,
                  float* y, std::size_t stride) {
  Panel& panel = Panel::get_of_thread();
  for (std::size_t r = first; r < last; r += kPanelRows) {
    const std::size_t rows = std::min(kPanelRows, last - r);
    panel.begin(in.groups());
    for (std::size_t b = 0; b < in.blocks(); ++b) {
      const std::size_t columns = std::min(kBlock, matrix.columns - b * kBlock);
      decode_part(matrix, {r, r + rows, b * kBlock, columns, panel.weights.data(), kPanelStride});
      for (std::size_t g = 0; g < in.groups(); ++g) {
        // Each group prefetches its share of the rows of the next block, so that the loads overlap with products.
        if (b + 1 < in.blocks())
          PrefetchBlock(matrix, r + rows * g / in.groups(), rows * (g + 1) / in.groups() - rows * g / in.groups(),
                        (b + 1) * kBlock);
        panel.multiply(rows, columns, in.get_group(g, b), std::min(kTogether, in.tokens - g * kTogether),
                       panel.sums.data() + g * kPanelRows * kTogether);
      }
    }
    for (std::size_t t = 0; t < in.tokens; ++t) {
      const float* sums = panel.sums.data() + t / kTogether * kPanelRows * kTogether + t % kTogether;
      for (std::size_t i = 0; i < rows; ++i) y[t * stride + (r - first) + i] = sums[i * kTogether];
    }
  }
}

}  // namespace poise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace poise {

HWY_EXPORT(MultiplyMany);

void multiply_panels(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput::Floats& x,
                     float* y, std::size_t stride) {
  HWY_DYNAMIC_DISPATCH(MultiplyMany)(matrix, first, last, x, y, stride);
}

}  // namespace poise
#endif
