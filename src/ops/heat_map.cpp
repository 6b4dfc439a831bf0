#include "ops/heat_map.hpp"

namespace poise {
namespace {

// Returns the first of `count` items that belongs to a cell.
std::uint64_t find_start(std::uint64_t cell, std::uint64_t count, std::uint64_t cells) {
  return (cell * count + cells - 1) / cells;
}

}  // namespace

CellGrid::CellGrid(const Shape& shape, std::size_t side) {
  const std::uint64_t elements = element_count(shape).value_or(0);
  // This limit ensures that row * cells and column * cells fit 64 bits.
  if (elements == 0 || side == 0 || shape.empty() || elements > UINT64_MAX / (side * 4)) return;
  length_ = shape.back();
  height_ = elements / length_;
  rows_ = static_cast<std::size_t>(std::min<std::uint64_t>(height_, side));
  columns_ = static_cast<std::size_t>(std::min<std::uint64_t>(length_, height_ == 1 ? side * 4 : side));
  for (std::size_t cell = 0; cell <= columns_; ++cell) starts_.push_back(find_start(cell, length_, columns_));
}

CellSums CellGrid::make_sums(std::uint64_t begin, std::uint64_t end) const {
  if (empty() || begin == end) return {};
  const std::size_t first = find_row(begin);
  return {first, std::vector<SquareSums>((find_row(end - 1) + 1 - first) * columns_)};
}

void CellGrid::merge(const CellSums& part, std::vector<SquareSums>& all) const {
  all.resize(rows_ * columns_);
  for (std::size_t i = 0; i < part.squares.size(); ++i) all[part.first_row * columns_ + i] += part.squares[i];
}

HeatMap CellGrid::make_map(const std::vector<SquareSums>& squares) const {
  HeatMap map{rows_, columns_, std::vector<double>(squares.size())};
  for (std::size_t row = 0; row < rows_; ++row) {
    const std::uint64_t height = find_start(row + 1, height_, rows_) - find_start(row, height_, rows_);
    for (std::size_t column = 0; column < columns_; ++column) {
      const auto count = static_cast<double>(height * (starts_[column + 1] - starts_[column]));
      const std::size_t cell = row * columns_ + column;
      map.rms[cell] = squares[cell].find_rms(count);
    }
  }
  return map;
}

}  // namespace poise
