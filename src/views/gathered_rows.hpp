// Gathers rows of several matrices: the rows of a vocabulary's tokens in the order of another vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <poise/blob.hpp>
#include <poise/tensor.hpp>

namespace poise {

struct RowSource {
  std::uint32_t matrix;  // an index into a list of matrices
  std::uint32_t row;

  friend bool operator==(const RowSource&, const RowSource&) = default;
};

// Lists, for each row of a result, the rows that make it.
class RowSources {
 public:
  // Appends a row, which is the mean of the rows at these places. Requires: at least one.
  void add(std::span<const RowSource> places) {
    places_.insert(places_.end(), places.begin(), places.end());
    ends_.push_back(places_.size());
  }

  std::size_t size() const { return ends_.size(); }
  // Requires: row < size().
  std::span<const RowSource> operator[](std::size_t row) const {
    const std::size_t begin = row == 0 ? 0 : ends_[row - 1];
    return std::span(places_).subspan(begin, ends_[row] - begin);
  }

 private:
  std::vector<RowSource> places_;
  std::vector<std::size_t> ends_;  // the end of each row's places
};

// Returns these rows as float32 numbers, decoded when they are read. A mean of several rows is computed in float64.
// Takes constant memory: if a matrix can only be read from front to back, each pass over the matrices gathers at most
// 65,536 of their rows and 64 MiB, but always the sources of at least one row of the result. The first axis of a matrix
// counts its rows; an element of a vector is a row. Requires: at least one matrix; matrices with floating-point
// elements, whose shapes differ in the first axis at most; all places are in the matrices.
BlobPtr gather_rows(const std::vector<Tensor>& matrices, RowSources rows);

}  // namespace poise
