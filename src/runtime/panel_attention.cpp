#include "runtime/attention.hpp"

#include <algorithm>
#include <array>

#include "bytes/checked.hpp"
#include "kernels/aligned_vector.hpp"
#include "kernels/cache_type.hpp"
#include "kernels/code_panel.hpp"
#include "kernels/product.hpp"

namespace poise {
namespace {

// How many rows of queries are computed together: first all their scores, then their weights. Up to some thousand
// positions, these fit the second-level cache.
constexpr std::size_t kRows = 32;
static_assert(kRows % kCodeTokens == 0 && kBlockPositions % kCodeRows == 0 && kBlockPositions == kMostRoundedStep);

// Returns how many numbers of a key share a scale.
std::size_t find_key_step(std::size_t size) {
  std::size_t step = kMostRoundedStep;
  while (size % step != 0) step /= 2;
  return step;
}

CodeLayout make_layout(std::size_t columns, std::size_t step) {
  return {.columns = columns, .step = step, .integers = PanelIntegers::rounded};
}

// Computes attention with keys and values as panels of rounded integers. Each thread has one, and reuses its memory.
//
// The rows of a panel of keys are positions, and its columns are the numbers of a key. The rows of a panel of values
// are the numbers of a value, and its columns are positions: those of a block share a scale. So a row of queries uses
// the integers of values only for blocks that it sees as a whole, and adds other values as float32. No result then
// depends on positions that its token does not see. Keys have a scale of their own at each position.
class PanelAttention {
 public:
  static PanelAttention& get_thread_instance() {
    thread_local PanelAttention attention;
    return attention;
  }

  bool attend(const AttentionTask& task, const AttentionHeads& heads, float scale, const float* queries, float* out) {
    const TaskRows rows(task, heads);
    size_ = heads.size;
    key_step_ = find_key_step(size_);
    if (!load_keys_and_values(rows)) return false;
    for (std::size_t row = 0; row < rows.count(); row += kRows)
      attend_rows(rows, {row, std::min(rows.count(), row + kRows)}, scale, queries, out);
    return true;
  }

 private:
  // Holds panels one after the other. The codes of a panel begin `codes_apart` bytes after those of the panel before
  // it, and its scales `scales_apart` numbers after.
  struct PanelRows {
    AlignedVector<std::uint8_t> codes;
    AlignedFloats scales;
    std::size_t codes_apart = 0;
    std::size_t scales_apart = 0;

    // Prepares for panels with this number of columns.
    void resize(std::size_t panels, std::size_t columns, std::size_t step) {
      codes_apart = 2 * columns * kCodeRows;
      scales_apart = columns / step * kCodeRows;
      codes.resize(std::max(codes.size(), panels * codes_apart));
      scales.resize(std::max(scales.size(), panels * scales_apart));
    }
    std::uint8_t* get_codes(std::size_t panel, std::size_t column) {
      return codes.data() + panel * codes_apart + 2 * column * kCodeRows;
    }
    float* get_scales(std::size_t panel, std::size_t step) {
      return scales.data() + panel * scales_apart + step * kCodeRows;
    }
  };

  // Rounds keys and values. Returns false if one is not finite.
  bool load_keys_and_values(const TaskRows& rows) {
    keys_.resize(rows.positions() / kCodeRows, size_, key_step_);
    values_.resize(size_ / kCodeRows, rows.positions(), kBlockPositions);
    numbers_.resize(std::max(numbers_.size(), kBlockPositions * size_));
    for (std::size_t at = 0; at < rows.positions(); at += kBlockPositions) {
      if (!rows.decode_block(Cached::keys, at, numbers_.data())) return false;
      for (std::size_t p = 0; p < kBlockPositions; p += kCodeRows) {
        const std::size_t panel = (at + p) / kCodeRows;
        for (std::size_t i = 0; i < size_; i += key_step_)
          round_panel_step(numbers_.data() + i * kBlockPositions + p, key_step_, kBlockPositions,
                           keys_.get_codes(panel, i), keys_.get_scales(panel, i / key_step_));
      }
      if (!rows.decode_block(Cached::values, at, numbers_.data())) return false;
      for (std::size_t i = 0; i < size_; i += kCodeRows)
        round_panel_step(numbers_.data() + i, kBlockPositions, size_, values_.get_codes(i / kCodeRows, at),
                         values_.get_scales(i / kCodeRows, at / kBlockPositions));
    }
    return true;
  }

  // Returns the blocks that are in `seen` as a whole; an empty range if there are none.
  static IndexRange cut_to_whole_blocks(const IndexRange& seen) {
    const std::size_t first = ceil_div(seen.first, kBlockPositions) * kBlockPositions;
    return {first, std::max(first, seen.last / kBlockPositions * kBlockPositions)};
  }

  void attend_rows(const TaskRows& task, const IndexRange& rows, float scale, const float* queries, float* out) {
    const IndexRange blocks = task.find_seen_blocks(rows);
    numbers_.resize(std::max(numbers_.size(), kRows * size_));
    for (std::size_t row = rows.first; row < rows.last; ++row)
      std::copy_n(queries + task.find_place(row), size_, numbers_.data() + (row - rows.first) * size_);
    convert_input(query_input_, make_layout(size_, key_step_), numbers_.data(), size_, rows.size());
    const std::size_t stride = blocks.size() + 16;  // not a power of two: rows then use different lines of the cache
    scores_.resize(std::max(scores_.size(), kRows * stride));
    std::fill_n(scores_.begin(), kRows * stride, 0.0F);
    for (std::size_t at = blocks.first; at < blocks.last; at += kCodeRows)
      multiply(keys_, at / kCodeRows, 0, query_input_, rows.size(), scores_.data() + (at - blocks.first), stride);

    std::array<float, kRows> factors;
    IndexRange whole = {blocks.last, blocks.first};  // the blocks that at least one row sees as a whole
    for (std::size_t row = rows.first; row < rows.last; ++row) {
      const IndexRange here = cut_to_whole_blocks(task.find_seen(row));
      if (here.size() > 0) whole = {std::min(whole.first, here.first), std::max(whole.last, here.last)};
      factors[row - rows.first] =
          task.compute_weights(row, blocks, scale, scores_.data() + (row - rows.first) * stride);
    }
    for (std::size_t row = rows.first, next = row; row < rows.last; row = next) {
      next = std::min(rows.last, task.find_next_token(row));
      add_exact_values(task, {row, next}, blocks.first, scores_.data() + (row - rows.first) * stride, stride,
                       factors.data() + (row - rows.first), out + task.find_place(row));
    }
    sums_.assign(kRows * size_, 0.0F);
    if (whole.first < whole.last) {
      convert_input(weight_input_, make_layout(whole.size(), kBlockPositions),
                    scores_.data() + (whole.first - blocks.first), stride, rows.size());
      for (std::size_t i = 0; i < size_; i += kCodeRows)
        multiply(values_, i / kCodeRows, whole.first, weight_input_, rows.size(), sums_.data() + i, size_);
    }
    for (std::size_t row = rows.first; row < rows.last; ++row) {
      const float* const sums = sums_.data() + (row - rows.first) * size_;
      float* const to = out + task.find_place(row);
      for (std::size_t i = 0; i < size_; ++i) to[i] = (to[i] + sums[i]) * factors[row - rows.first];
    }
  }

  // Sets `out` to the weighted values of positions that are added as float32, and their weights to 0, for rows of one
  // token. These positions are those that do not fill a block, and those with a large weight, which would make the step
  // of its block too coarse for the other weights. Many heads give a large weight to the first token of a text. The
  // weights of a row are those of positions from `first` on.
  void add_exact_values(const TaskRows& task, const IndexRange& rows, std::size_t first, float* weights,
                        std::size_t stride, const float* factors, float* out) const {
    constexpr float kLargeShare = 1.0F / 8;  // of the sum of a row's weights
    const IndexRange seen = task.find_seen(rows.first);
    const IndexRange whole = cut_to_whole_blocks(seen);
    const auto get_weights = [&](std::size_t q, std::size_t position) {
      return weights + q * stride + (position - first);
    };
    const auto add = [&](const IndexRange& positions, std::size_t q, std::size_t count) {
      if (positions.first >= positions.last) return;
      task.cache().type().kernels().add_values({get_weights(q, positions.first), stride, count},
                                               task.find_run(Cached::values, positions), size_, out + q * size_);
      for (std::size_t i = q; i < q + count; ++i) std::fill_n(get_weights(i, positions.first), positions.size(), 0.0F);
    };
    std::fill_n(out, rows.size() * size_, 0.0F);
    add({seen.first, std::min(seen.last, whole.first)}, 0, rows.size());
    add({whole.last, seen.last}, 0, rows.size());
    for (std::size_t q = 0; q < rows.size(); ++q) {
      const float large = kLargeShare / factors[q];
      if (!(large < 1)) continue;  // no weight is above 1
      for (std::size_t block = whole.first; block < whole.last; block += kBlockPositions) {
        const float* const of_block = get_weights(q, block);
        const auto is_large = [&](float weight) { return weight > large; };
        if (std::count_if(of_block, of_block + kBlockPositions, is_large) == 0)
          continue;  // in vectors, unlike any_of()
        for (std::size_t p = 0; p < kBlockPositions; ++p) {
          if (is_large(of_block[p])) add({block + p, block + p + 1}, q, 1);
        }
      }
    }
  }

  static void convert_input(KernelInput::Panels& input, const CodeLayout& layout, const float* x, std::size_t stride,
                            std::size_t rows) {
    input.reset(layout, rows);
    input.convert(InputPart{x, stride, {0, rows}, {0, layout.blocks()}});
  }

  // Adds the products of a panel, from a column on, and of all rows of x to the sums.
  static void multiply(PanelRows& panels, std::size_t panel, std::size_t column, const KernelInput::Panels& x,
                       std::size_t rows, float* sums, std::size_t stride) {
    const CodeLayout& layout = x.layout;
    for (std::size_t b = 0; b < layout.blocks(); ++b) {
      const std::size_t begin = column + b * layout.block_columns();
      const float* const scales = panels.get_scales(panel, begin / layout.step);
      for (std::size_t g = 0; g * kCodeTokens < rows; ++g)
        multiply_rounded_tile(
            {panels.get_codes(panel, begin), scales, scales, x.get_group(g, b), layout.count_steps(b),
             layout.count_row_bytes(), layout.count_step_bytes(), sums + g * kCodeTokens * stride, stride},
            std::min(kCodeTokens, rows - g * kCodeTokens));
    }
  }

  std::size_t size_ = 0;
  std::size_t key_step_ = 0;
  PanelRows keys_;
  PanelRows values_;
  KernelInput::Panels query_input_;
  KernelInput::Panels weight_input_;
  AlignedFloats numbers_;
  AlignedFloats scores_;  // [kRows, stride]
  AlignedFloats sums_;    // [kRows, size]
};

}  // namespace

bool can_use_panels(std::size_t size) { return size % kCodeRows == 0 && can_multiply_rounded_panels(); }

bool attend_on_panels(const AttentionTask& task, const AttentionHeads& heads, float scale, const float* queries,
                      float* out) {
  return PanelAttention::get_thread_instance().attend(task, heads, scale, queries, out);
}

}  // namespace poise
