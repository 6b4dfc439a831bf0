// A HeatMap shows a tensor in a few cells. Each cell has the root mean square of the elements in neighbouring rows and
// columns.
//
// A tensor with more than two dimensions counts as a matrix whose columns are its last dimension; a vector is a matrix
// of one row. Column j of m columns is in cell j * cells / m, rounded down, and likewise for rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <poise/tensor.hpp>

#include "numeric/summary_kernels.hpp"

namespace poise {

struct HeatMap {
  std::size_t rows = 0;     // rows of cells; 0: there is no map
  std::size_t columns = 0;  // columns of cells
  std::vector<double> rms;  // the cells, row by row; NaN if a number of a cell is not finite
};

// Holds sums of squares, for some rows of cells from `first_row` on.
struct CellSums {
  std::size_t first_row = 0;
  std::vector<SquareSums> squares;
};

// Divides the elements of a tensor into the cells of a heat map.
class CellGrid {
 public:
  // Divides the matrix into up to side * side cells, and a vector into up to side * 4. Makes no cells if the tensor has
  // no dimensions, no elements, or at least 2^62 / side elements, or if `side` is 0.
  CellGrid(const Shape& shape, std::size_t side);

  bool empty() const { return columns_ == 0; }

  // Returns zeros for the cells of the elements [begin, end).
  CellSums make_sums(std::uint64_t begin, std::uint64_t end) const;

  // Adds the elements [first, first + count). sum_squares(at, length) returns the sum of `length` squares from element
  // first + at on, as a number or as SquareSums, NaN if one of them is not finite. Requires: `sums` has the cells of
  // these elements.
  template <typename SumSquares>
  void add(std::uint64_t first, std::size_t count, const SumSquares& sum_squares, CellSums& sums) const {
    for (std::size_t at = 0; at < count;) {
      const std::uint64_t element = first + at;
      const std::uint64_t column = element % length_;
      const auto in_row = static_cast<std::size_t>(std::min<std::uint64_t>(count - at, length_ - column));
      SquareSums* const row = sums.squares.data() + (find_row(element) - sums.first_row) * columns_;
      std::size_t cell = find_column(column);
      for (std::size_t done = 0; done < in_row; ++cell) {
        const auto length =
            static_cast<std::size_t>(std::min<std::uint64_t>(in_row - done, starts_[cell + 1] - column - done));
        row[cell] += sum_squares(at + done, length);
        done += length;
      }
      at += in_row;
    }
  }

  // Adds `part` to `all`, the sums of all cells. `all` may be empty.
  void merge(const CellSums& part, std::vector<SquareSums>& all) const;
  HeatMap make_map(const std::vector<SquareSums>& squares) const;

 private:
  std::size_t find_row(std::uint64_t element) const {
    return static_cast<std::size_t>(element / length_ * rows_ / height_);
  }
  std::size_t find_column(std::uint64_t column) const { return static_cast<std::size_t>(column * columns_ / length_); }

  std::uint64_t height_ = 0;  // the rows of the matrix
  std::uint64_t length_ = 1;  // the columns of the matrix
  std::size_t rows_ = 0;      // the number of rows of cells
  std::size_t columns_ = 0;
  std::vector<std::uint64_t> starts_;  // the first column of each cell, and the end
};

}  // namespace poise
