// Finds the product of two thin matrices that is closest to a matrix, by a truncated singular value decomposition.
//
// The decomposition is randomized: a few products with the matrix and its transpose turn random vectors into vectors
// that span most of it. The random numbers are always the same, and sums do not depend on the threads, so that the
// result is the same in every run on the same instruction set.
//
// Source: N. Halko, P. G. Martinsson, J. A. Tropp, "Finding structure with randomness", SIAM Review 53 (2011),
// algorithms 4.4 and 5.1.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace poise {

// Describes a matrix whose rows are computed when they are read.
struct ReadMatrix {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  double largest = 0;         // the largest magnitude of an element
  double sum_of_squares = 0;  // of all elements
  // Reads whole rows from `first` on. Several threads call it.
  std::function<void(std::uint64_t first, std::span<float> out)> read;
  // Receives the number of elements of every piece that was read. fit_low_rank() reads the matrix kLowRankPasses times.
  std::function<void(std::uint64_t elements)> count = {};
};

inline constexpr unsigned kLowRankPasses = 4;

// Holds U sqrt(S) and sqrt(S) V^T, whose product is the fit U S V^T.
struct LowRankFit {
  std::vector<float> left;   // [rows, rank]
  std::vector<float> right;  // [rank, columns]
  double captured = 1;       // the share of sum_of_squares that the product has
};

// Needs memory for a few thin matrices, and for up to two blocks of at most 256 rows per thread. Throws what reading
// throws. Requires: finite elements that are not all 0; 1 <= rank <= min(rows, columns).
LowRankFit fit_low_rank(const ReadMatrix& matrix, std::uint64_t rank);

}  // namespace poise
