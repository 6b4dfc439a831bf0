// transposed: a matrix with its rows as columns.
#pragma once

#include <poise/tensor.hpp>

namespace poise {

// Elements of a dense matrix move when read; blocks keep their bytes and run the other way. Requires: a matrix that is
// dense, of whole bytes, or of blocks.
Tensor transposed(Tensor matrix);

}  // namespace poise
