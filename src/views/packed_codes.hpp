// Codes of a matrix as quantized directories pack them, in the packing of zTensor's groups.
#pragma once

#include <cstdint>
#include <span>

#include <poise/blob.hpp>
#include <poise/dtype.hpp>

namespace poise {

// A matrix of codes of up to eight bits. Neighbours along one axis follow each other in a stream of bits, the low bits
// of a byte first: that of a row is made of its bytes, that of a column of its words of 32 bits.
struct PackedCodes {
  enum class Along : std::uint8_t { rows, columns };

  BlobPtr words;
  std::uint64_t rows = 0;     // of codes
  std::uint64_t columns = 0;  // of codes
  unsigned bits = 0;
  Along along = Along::rows;
  // The place in the stream of each of so many neighbours; empty: in order.
  std::span<const std::uint8_t> order = {};
  unsigned add = 0;             // to each code, modulo 2^bits
  std::uint64_t row_bytes = 0;  // along rows: from one row to the next; 0: rows follow each other
};

enum class MatrixOrder : std::uint8_t { same, transposed };

// The same codes in row-major order, each in `bits` bits, the low bits of a byte first: as the parts of groups hold
// them. Computed when they are read. Requires: `bits` is 2, 4 or 8, and no less than those of a code; the codes of a
// row fill whole bytes, those of a column whole words, and `words` has as many.
BlobPtr make_codes_blob(const PackedCodes& codes, MatrixOrder order, unsigned bits);

// The same codes as float16 numbers. Requires: the same.
BlobPtr make_code_numbers_blob(const PackedCodes& codes, MatrixOrder order);

}  // namespace poise
