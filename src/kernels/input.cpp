#include <algorithm>
#include <cstring>

#include <hwy/cache_control.h>

#include "kernels/processor.hpp"
#include "kernels/stored_type.hpp"

namespace poise {
namespace {

std::size_t rounded_up(std::size_t count, std::size_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// The number of columns for sums of x; 0: all.
std::size_t x_group_of(const StoredRows& matrix) {
  return matrix.blocks != nullptr ? stored_type(matrix).x_group : matrix.group_size;
}

// Whether it becomes panels that meet x of 7 bits, four columns an instruction, or of 15 bits on a matrix unit.
bool has_fast_panels(const StoredRows& matrix) {
  const CodeForm& form = stored_type(matrix).kernels().panels;
  const CodeLayout layout = code_layout(matrix);
  return layout.tiled || (layout.step > 0 && !form.words && form.vnni && has_vnni());
}

}  // namespace

KernelInput::Form input_form(const StoredRows& matrix, std::size_t tokens, Precision precision) {
  if (precision == Precision::exact) return KernelInput::Form::floats;
  if (KernelInput::is_few(matrix, tokens, precision))
    return takes_integers(matrix) ? stored_type(matrix).kernels().integers : KernelInput::Form::floats;
  if (tokens <= KernelInput::kTokensOfPanels && has_fast_panels(matrix)) return KernelInput::Form::panels;
  if (tile_unit() != TileUnit::none) return KernelInput::Form::tiles;
  return code_layout(matrix).step > 0 ? KernelInput::Form::panels : KernelInput::Form::floats;
}

// Where several tokens in float32 are to give what they give among any others, they take the same way.
bool KernelInput::is_few(const StoredRows& matrix, std::size_t tokens, Precision precision) {
  if (tokens == 1) return true;
  if (precision == Precision::exact || tokens > kFewTokens) return false;
  if (precision == Precision::apart || tokens <= kFewTokensWithPanels) return true;
  return !has_fast_panels(matrix) && (tile_unit() == TileUnit::none || tokens <= kFewTokensWithTiles);
}

KernelInput::KernelInput(const StoredRows& matrix, std::size_t tokens, Precision precision)
    : precision_(precision),
      is_few_(is_few(matrix, tokens, precision)),
      form_(input_form(matrix, tokens, precision)),
      tokens_(tokens),
      columns_(matrix.columns),
      groups_(rounded_up(tokens, kTogether) / kTogether) {
  if (form_ == Form::tiles) tile_layout_ = tile_layout(matrix);
  block_columns_ = form_ == Form::tiles                           ? tile_layout_.block()
                   : form_ == Form::panels                        ? kCodeBlock
                   : form_ == Form::words || form_ == Form::bytes ? kIntegerBlock
                                                                  : kFloatBlock;
  blocks_ = rounded_up(columns_, block_columns_) / block_columns_;
  if (form_ == Form::panels) {
    code_layout_ = code_layout(matrix);
    codes_.assign(code_layout_.place(0, blocks_, tokens_), std::byte{0});
  } else if (form_ == Form::tiles) {
    codes_.resize(tile_layout_.place(0, blocks_, tokens_));
  } else if (form_ == Form::floats) {
    floats_.resize(is_few_ ? tokens * columns_ : blocks_ * groups_ * kFloatBlock * kTogether);
  } else {
    padded_ = rounded_up(columns_, kPadding);
    planes_ = stored_type(matrix).planes;
    group_size_ = x_group_of(matrix);
    if (form_ == Form::bytes) {
      sums_stride_ = 4 * columns_ / group_size_;
      bytes_.resize(tokens * columns_);
      scales_.resize(tokens * sums_stride_);
      sums_.resize(tokens * sums_stride_);
      block_scales_.resize(tokens * (columns_ / kByteBlock));
      block_sums_.resize(tokens * (columns_ / kByteBlock));
      integers_.resize(tokens * (columns_ / 16));
      return;
    }
    sums_stride_ = group_size_ == 0 ? 1 : rounded_up(columns_ / group_size_, 16);
    integers_.resize(tokens * blocks_ * kIntegerBlock);
    scales_.resize(tokens * blocks_);
    sums_.resize(tokens * sums_stride_);
  }
}

bool KernelInput::suits(const StoredRows& matrix) const {
  if (columns_ != matrix.columns || form_ != input_form(matrix, tokens_, precision_)) return false;
  if (form_ == Form::bytes) return group_size_ == x_group_of(matrix);
  if (form_ == Form::panels) return code_layout_ == code_layout(matrix);
  if (form_ == Form::tiles) return tile_layout_ == tile_layout(matrix);
  return form_ != Form::words || (planes_ == stored_type(matrix).planes && group_size_ == x_group_of(matrix));
}

void KernelInput::take(const float* x, std::size_t first, std::size_t last) {
  if (!is_few_) return take({x, columns_, {first, last}, {0, blocks_}});
  for (std::size_t t = first; t < last; ++t) take_token(x + t * columns_, t);
}

void KernelInput::take(const InputPart& part) {
  switch (form_) {
    case Form::tiles: return take_tile_numbers(part, tokens_, tile_layout_, codes_.data());
    case Form::panels: return take_codes(part, tokens_, code_layout_, codes_.data());
    default: return take_floats(part);
  }
}

void KernelInput::take_token(const float* x, std::size_t t) {
  switch (form_) {
    case Form::words:
      return take_integers(x, {columns_, planes_, group_size_},
                           {integers_.data() + t * blocks_ * kIntegerBlock, scales_.data() + t * blocks_,
                            sums_.data() + t * sums_stride_});
    case Form::bytes: {
      const std::size_t blocks = columns_ / kByteBlock;
      return take_bytes(
          x, columns_, group_size_,
          {bytes_.data() + t * columns_, scales_.data() + t * sums_stride_, sums_.data() + t * sums_stride_,
           block_scales_.data() + t * blocks, block_sums_.data() + t * blocks, integers_.data() + t * (columns_ / 16)});
    }
    default: std::copy_n(x, columns_, floats_.data() + t * columns_);
  }
}

void KernelInput::take_floats(const InputPart& part) {
  constexpr std::size_t kStep =
      16;  // columns, so that the output stays in the cache until all tokens have been written
  static_assert(kFloatBlock % kStep == 0);
  const std::size_t first = part.blocks.first * kFloatBlock;
  const std::size_t end = std::min(columns_, part.blocks.last * kFloatBlock);
  for (std::size_t begin = first; begin < end; begin += kStep) {
    const std::size_t block = begin / kFloatBlock;
    const std::size_t count = std::min(kStep, end - begin);
    for (std::size_t t = part.tokens.first; t < part.tokens.last; ++t) {
      const float* const from = part.x + t * part.stride + (begin - first);
      hwy::Prefetch(from + kStep);
      float* const out = floats_.data() +
                         ((block * groups_ + t / kTogether) * kFloatBlock + begin % kFloatBlock) * kTogether +
                         t % kTogether;
      for (std::size_t i = 0; i < count; ++i) out[i * kTogether] = from[i];
    }
  }
}

}  // namespace poise
