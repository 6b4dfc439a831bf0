// transposed: a matrix, or each of a stack, with its rows as columns.
#pragma once

#include <poise/tensor.hpp>

namespace poise {

// Elements of a dense matrix move when read; blocks keep their bytes and run the other way. Requires: a matrix or
// several that are dense, of whole bytes, or a matrix of blocks.
Tensor transposed(Tensor tensor);

}  // namespace poise
