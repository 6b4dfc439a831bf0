#include <algorithm>

#include "runtime/product_kernels.hpp"

namespace poise {
namespace {

std::size_t rounded_up(std::size_t count, std::size_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// Codes in a 16-bit word.
std::size_t planes_of(Storage storage) { return storage == Storage::i4 || storage == Storage::u4 || storage == Storage::group4 ? 4 : 2; }

}  // namespace

KernelInput::KernelInput(const StoredRows& matrix, std::size_t tokens) : as_integers_(takes_integers(matrix)), tokens_(tokens), columns_(matrix.columns) {
  const std::size_t block = as_integers_ ? kIntegerBlock : kFloatBlock;
  blocks_ = rounded_up(columns_, block) / block;
  if (!as_integers_) {
    floats_.resize(blocks_ * tokens * kFloatBlock);
    return;
  }
  padded_ = rounded_up(columns_, kPadding);
  planes_ = planes_of(matrix.storage);
  group_size_ = matrix.group_size;
  sums_stride_ = group_size_ == 0 ? 1 : rounded_up(columns_ / group_size_, 16);
  integers_.resize(blocks_ * tokens * kIntegerBlock);
  scales_.resize(tokens * blocks_);
  sums_.resize(tokens * sums_stride_);
}

bool KernelInput::suits(const StoredRows& matrix) const {
  if (columns_ != matrix.columns || as_integers_ != takes_integers(matrix)) return false;
  return !as_integers_ || (planes_ == planes_of(matrix.storage) && group_size_ == matrix.group_size);
}

void KernelInput::take(const float* x, std::size_t first, std::size_t last) {
  for (std::size_t t = first; t < last; ++t) {
    const float* token = x + t * columns_;
    if (as_integers_) {
      const IntegerLayout layout = {columns_, planes_, group_size_, tokens_ * kIntegerBlock};
      take_integers(token, layout, {integers_.data() + t * kIntegerBlock, scales_.data() + t * blocks_, sums_.data() + t * sums_stride_});
      continue;
    }
    for (std::size_t b = 0; b < blocks_; ++b) {
      const std::size_t count = std::min(kFloatBlock, columns_ - b * kFloatBlock);
      std::copy_n(token + b * kFloatBlock, count, floats_.data() + (b * tokens_ + t) * kFloatBlock);
    }
  }
}

void multiply_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& x, float* y, std::size_t stride) {
  if (takes_integers(matrix)) return multiply_integer_rows(matrix, first, last, x, y, stride);
  multiply_float_rows(matrix, first, last, x, y, stride);
}

}  // namespace poise
