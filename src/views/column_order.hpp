// column_order: rows whose columns are in another order.
#pragma once

#include <cstdint>
#include <vector>

#include <poise/blob.hpp>

namespace poise {

// Rows whose i-th element is element order[i] of a row of `rows`, which has `columns` of them without gaps. Computed
// when read. Requires: the order names columns; elements are of whole bytes, or of 2 or 4 bits, low bits of a byte
// first; the blob is whole rows, and rows are whole bytes, in the order, too.
BlobPtr reorder_columns(BlobPtr rows, unsigned bits, std::uint64_t columns, std::vector<std::uint32_t> order);

}  // namespace poise
