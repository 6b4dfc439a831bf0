#include <algorithm>

#include <hwy/cache_control.h>

#include "kernels/processor.hpp"
#include "kernels/product_kernels.hpp"

namespace poise {
namespace {

std::size_t round_up(std::size_t count, std::size_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// Returns how many columns of x each sum adds; 0 if a sum adds all columns.
std::size_t choose_x_group(const StoredRows& matrix) {
  return matrix.blocks != nullptr ? find_stored_type(matrix).x_group : matrix.group_size;
}

// Returns the form of integer x for few tokens. Requires: has_integer_product().
KernelInput::Form choose_integer_form(const StoredRows& matrix) {
  return find_stored_type(matrix).kernels().multiply_bytes != nullptr ? KernelInput::Form::bytes
                                                                      : KernelInput::Form::words;
}

// Returns true if the matrix can become panels of codes for the fastest instructions: those of AVX-512 VNNI with x of 7
// bits, or those of a matrix unit with x of 15 bits.
bool has_fast_panels(const StoredRows& matrix) {
  const CodeLayout layout = make_code_layout(matrix);
  return layout.tiled || (layout.step > 0 && layout.integers == PanelIntegers::bytes &&
                          find_stored_type(matrix).kernels().panels.vnni && has_vnni());
}

}  // namespace

KernelInput::Form choose_input_form(const StoredRows& matrix, std::size_t tokens, Precision precision) {
  if (precision == Precision::exact) return KernelInput::Form::floats;
  if (KernelInput::is_few(matrix, tokens, precision))
    return has_integer_product(matrix) ? choose_integer_form(matrix) : KernelInput::Form::floats;
  if (tokens <= KernelInput::kTokensOfPanels && has_fast_panels(matrix)) return KernelInput::Form::panels;
  if (get_tile_unit() != TileUnit::none) return KernelInput::Form::tiles;
  return make_code_layout(matrix).step > 0 ? KernelInput::Form::panels : KernelInput::Form::floats;
}

// With Precision::exact, two or more tokens always use the kernels for many tokens, so that their results do not depend
// on the number of tokens.
bool KernelInput::is_few(const StoredRows& matrix, std::size_t tokens, Precision precision) {
  if (tokens == 1) return true;
  if (precision == Precision::exact || tokens > kFewTokens) return false;
  if (precision == Precision::apart || tokens <= kFewTokensWithPanels) return true;
  return !has_fast_panels(matrix) && (get_tile_unit() == TileUnit::none || tokens <= kFewTokensWithTiles);
}

KernelInput::AnyForm KernelInput::make_form(const StoredRows& matrix, std::size_t tokens, Precision precision) {
  switch (choose_input_form(matrix, tokens, precision)) {
    case Form::words: return Words(matrix, tokens);
    case Form::bytes: return Bytes(matrix, tokens);
    case Form::tiles: return Tiles(matrix, tokens);
    case Form::panels: return Panels(matrix, tokens);
    default: return Floats(matrix, tokens, is_few(matrix, tokens, precision));
  }
}

KernelInput::KernelInput(const StoredRows& matrix, std::size_t tokens, Precision precision)
    : precision_(precision),
      is_few_(is_few(matrix, tokens, precision)),
      tokens_(tokens),
      columns_(matrix.columns),
      form_(make_form(matrix, tokens, precision)) {}

std::size_t KernelInput::block_columns() const {
  switch (form()) {
    case Form::tiles: return as<Tiles>().layout.block_columns();
    case Form::panels: return as<Panels>().layout.block_columns();
    case Form::floats: return kFloatBlock;
    default: return kIntegerBlock;
  }
}

bool KernelInput::suits(const StoredRows& matrix) const {
  return columns_ == matrix.columns && form() == choose_input_form(matrix, tokens_, precision_) &&
         std::visit([&](const auto& x) { return x.suits(matrix); }, form_);
}

void KernelInput::convert(const float* x, std::size_t first, std::size_t last) {
  if (!is_few_) return convert({x, columns_, {first, last}, {0, blocks()}});
  const auto convert_tokens = [&](auto& form) {
    if constexpr (requires { form.convert_token(x, first); }) {
      for (std::size_t t = first; t < last; ++t) form.convert_token(x + t * columns_, t);
    }
  };
  std::visit(convert_tokens, form_);
}

void KernelInput::convert(const InputPart& part) {
  const auto convert_part = [&](auto& form) {
    if constexpr (requires { form.convert(part); }) form.convert(part);
  };
  std::visit(convert_part, form_);
}

KernelInput::Words::Words(const StoredRows& matrix, std::size_t count)
    : tokens(count),
      columns(matrix.columns),
      planes(find_stored_type(matrix).planes),
      group_size(choose_x_group(matrix)),
      sums_stride(group_size == 0 ? 1 : round_up(columns / group_size, 16)),
      numbers(tokens * blocks() * kIntegerBlock),
      scales(tokens * blocks()),
      sums(tokens * sums_stride) {}

bool KernelInput::Words::suits(const StoredRows& matrix) const {
  return planes == find_stored_type(matrix).planes && group_size == choose_x_group(matrix);
}

KernelInput::Bytes::Bytes(const StoredRows& matrix, std::size_t count)
    : tokens(count),
      columns(matrix.columns),
      group_size(choose_x_group(matrix)),
      sums_stride(4 * columns / group_size),
      numbers(tokens * columns),
      scales(tokens * sums_stride),
      sums(tokens * sums_stride),
      block_scales(tokens * (columns / kByteBlock)),
      block_sums(tokens * (columns / kByteBlock)),
      integer_sums(tokens * (columns / 16)) {}

bool KernelInput::Bytes::suits(const StoredRows& matrix) const { return group_size == choose_x_group(matrix); }

KernelInput::Tiles::Tiles(const StoredRows& matrix, std::size_t count) : LaidOut{count, make_tile_layout(matrix)} {
  numbers.resize(layout.find_offset(0, layout.blocks(), tokens));
}

bool KernelInput::Tiles::suits(const StoredRows& matrix) const { return layout == make_tile_layout(matrix); }

KernelInput::Panels::Panels(const StoredRows& matrix, std::size_t count) : LaidOut{count, make_code_layout(matrix)} {
  numbers.assign(layout.find_offset(0, layout.blocks(), tokens), std::byte{0});
}

void KernelInput::Panels::reset(const CodeLayout& new_layout, std::size_t count) {
  layout = new_layout;
  tokens = count;
  numbers.resize(std::max(numbers.size(), layout.find_offset(0, layout.blocks(), tokens)));
}

bool KernelInput::Panels::suits(const StoredRows& matrix) const { return layout == make_code_layout(matrix); }

KernelInput::Floats::Floats(const StoredRows& matrix, std::size_t count, bool few)
    : tokens(count), columns(matrix.columns), is_few(few) {
  numbers.resize(is_few ? tokens * columns : blocks() * groups() * kFloatBlock * kTogether);
}

void KernelInput::Floats::convert_token(const float* x, std::size_t t) {
  std::copy_n(x, columns, numbers.data() + t * columns);
}

void KernelInput::Floats::convert(const InputPart& part) {
  constexpr std::size_t kStep = 16;  // columns at a time: their output stays in the cache until all tokens are written
  static_assert(kFloatBlock % kStep == 0);
  const std::size_t first = part.blocks.first * kFloatBlock;
  const std::size_t end = std::min(columns, part.blocks.last * kFloatBlock);
  for (std::size_t begin = first; begin < end; begin += kStep) {
    const std::size_t block = begin / kFloatBlock;
    const std::size_t count = std::min(kStep, end - begin);
    for (std::size_t t = part.tokens.first; t < part.tokens.last; ++t) {
      const float* const from = part.x + t * part.stride + (begin - first);
      hwy::Prefetch(from + kStep);
      float* const out = numbers.data() +
                         ((block * groups() + t / kTogether) * kFloatBlock + begin % kFloatBlock) * kTogether +
                         t % kTogether;
      for (std::size_t i = 0; i < count; ++i) out[i * kTogether] = from[i];
    }
  }
}

}  // namespace poise
