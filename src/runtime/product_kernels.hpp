// What the files of product kernels offer each other; kernels.hpp is for everyone else.
#pragma once

#include "runtime/kernels.hpp"

namespace poise {

// How a token's x becomes integers.
struct IntegerLayout {
  std::size_t columns = 0;
  std::size_t planes = 0;
  std::size_t group_size = 0;  // 0: none
};

// Where they go; see KernelInput.
struct IntegerToken {
  std::int16_t* integers = nullptr;
  float* scales = nullptr;
  float* sums = nullptr;
};

void take_integers(const float* x, const IntegerLayout& layout, const IntegerToken& token);

// multiply_rows() where x is taken as floats, and as integers, which are of one token.
void multiply_float_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& x, float* y, std::size_t stride);
void multiply_integer_rows(const StoredRows& matrix, std::size_t first, std::size_t last, const KernelInput& x, float* y);

}  // namespace poise
