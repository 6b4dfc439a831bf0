// A part of x on its way into the form for products.
#pragma once

#include <cstddef>

#include "kernels/stored_rows.hpp"

namespace poise {

// Some columns of the x of some tokens: x[t * stride + c] is that of token t in column c of the first block.
struct InputPart {
  const float* x = nullptr;
  std::size_t stride = 0;
  IndexRange tokens;
  IndexRange blocks;  // of columns, as many as the form of x has in one
};

}  // namespace poise
