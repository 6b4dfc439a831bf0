#include <algorithm>

#include "runtime/product_kernels.hpp"

namespace poise {
namespace {

std::size_t rounded_up(std::size_t count, std::size_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// Codes in a 16-bit word.
std::size_t planes_of(Storage storage) { return storage == Storage::i4 || storage == Storage::u4 || storage == Storage::group4 ? 4 : 2; }

bool is_taken_as_integers(const StoredRows& matrix, std::size_t tokens) { return tokens == 1 && takes_integers(matrix); }

}  // namespace

KernelInput::KernelInput(const StoredRows& matrix, std::size_t tokens)
    : as_integers_(is_taken_as_integers(matrix, tokens)), tokens_(tokens), columns_(matrix.columns), groups_(rounded_up(tokens, kTogether) / kTogether) {
  const std::size_t block = as_integers_ ? kIntegerBlock : kFloatBlock;
  blocks_ = rounded_up(columns_, block) / block;
  if (!as_integers_) {
    floats_.resize(tokens == 1 ? columns_ : blocks_ * groups_ * kFloatBlock * kTogether);
    return;
  }
  padded_ = rounded_up(columns_, kPadding);
  planes_ = planes_of(matrix.storage);
  group_size_ = matrix.group_size;
  integers_.resize(blocks_ * kIntegerBlock);
  scales_.resize(blocks_);
  sums_.resize(group_size_ == 0 ? 1 : rounded_up(columns_ / group_size_, 16));
}

bool KernelInput::suits(const StoredRows& matrix) const {
  if (columns_ != matrix.columns || as_integers_ != is_taken_as_integers(matrix, tokens_)) return false;
  return !as_integers_ || (planes_ == planes_of(matrix.storage) && group_size_ == matrix.group_size);
}

void KernelInput::take(const float* x, std::size_t first, std::size_t last) {
  if (as_integers_) return take_integers(x, {columns_, planes_, group_size_}, {integers_.data(), scales_.data(), sums_.data()});
  if (tokens_ == 1) {
    std::copy_n(x, columns_, floats_.begin());
    return;
  }
  constexpr std::size_t kStep = 16;  // columns, so that what is written stays in the cache until all tokens have been there
  static_assert(kFloatBlock % kStep == 0);
  for (std::size_t begin = 0; begin < columns_; begin += kStep) {
    const std::size_t block = begin / kFloatBlock;
    const std::size_t count = std::min(kStep, columns_ - begin);
    for (std::size_t t = first; t < last; ++t) {
      float* out = floats_.data() + ((block * groups_ + t / kTogether) * kFloatBlock + begin % kFloatBlock) * kTogether + t % kTogether;
      for (std::size_t i = 0; i < count; ++i) out[i * kTogether] = x[t * columns_ + begin + i];
    }
  }
}

void multiply_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& x, float* y, std::size_t stride) {
  if (x.as_integers()) return multiply_integer_rows(matrix, first, last, x, y);
  multiply_float_rows(matrix, first, last, x, y, stride);
}

}  // namespace poise
