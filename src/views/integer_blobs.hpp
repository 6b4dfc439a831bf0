// Makes blobs that change numbers when they are read, and blobs that repack codes: from the form of quantized
// directories to that of zTensor's groups.
#pragma once

#include <cstdint>
#include <span>

#include <poise/blob.hpp>
#include <poise/dtype.hpp>

namespace poise {

// Returns the size in bytes of the numbers that an element consists of: half an element if it is complex; 0 if two
// elements share a byte. Requires: dtype is not `unknown`.
unsigned get_number_bytes(DType dtype);

// Reverses the bytes of each number of `width` bytes. Requires: bytes.size() is a multiple of `width`, which is not 0.
void reverse_each_number(std::span<std::byte> bytes, unsigned width);

// Returns the blob with the bytes of every number of `width` bytes reversed; the blob itself for width 0 and 1.
BlobPtr make_byte_swapped_blob(BlobPtr blob, unsigned width);

// Returns the blob with the highest bit of every byte inverted: a signed byte becomes an unsigned one, 128 greater.
BlobPtr make_flipped_signs_blob(BlobPtr blob);

// Returns little-endian integers of 64 bits, each plus `addend`, computed when read; a sum beyond 64 bits wraps around.
// Requires: the blob's size is a multiple of 8.
BlobPtr make_raised_integers_blob(BlobPtr integers, std::int64_t addend);

// Describes a matrix of codes of up to eight bits. Neighbours along one axis form a stream of bits, low bits of a byte
// first: the bytes of a row, or the 32-bit words of a column.
struct PackedCodes {
  enum class Along : std::uint8_t { rows, columns };

  BlobPtr words;
  std::uint64_t rows = 0;     // rows of codes
  std::uint64_t columns = 0;  // columns of codes
  unsigned bits = 0;
  Along along = Along::rows;
  // order[i] is the position in the stream of the i-th neighbour; the pattern repeats. Empty: they are in order.
  std::span<const std::uint8_t> order = {};
  unsigned add = 0;             // the number added to each code, modulo 2^bits
  std::uint64_t row_bytes = 0;  // along rows: the distance of rows in bytes; 0: rows follow each other
  std::uint64_t per_word = 0;   // codes in 32 bits, whose other bits are unused; 0: the stream has no gaps
};

enum class MatrixOrder : std::uint8_t { same, transposed };

// Returns the codes of the matrix, or of its transpose, in row-major order. Each code takes `bits` bits, low bits of a
// byte first, as in the parts of groups. Computed when read. Requires: `bits` is 2, 4 or 8, and not less than the
// codes' bits; the codes of a row fill whole bytes, those of a column whole words, and `words` has all these bytes or
// words.
BlobPtr make_codes_blob(const PackedCodes& codes, MatrixOrder order, unsigned bits);

// Returns the codes as float16 numbers; stored_as() gives the words. Requires of `codes` what make_codes_blob()
// requires.
BlobPtr make_code_numbers_blob(const PackedCodes& codes, MatrixOrder order);

}  // namespace poise
