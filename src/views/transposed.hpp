// transposed: a matrix with its rows as columns.
#pragma once

#include <poise/tensor.hpp>

namespace poise {

// The elements of a dense matrix move when they are read; blocks stay what they are, and run the other way. Requires: a
// matrix that is dense, of whole bytes, or blocks.
Tensor transposed(Tensor matrix);

}  // namespace poise
