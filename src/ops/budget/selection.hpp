// Selection: one candidate for each item, so that the bytes of all fit a budget and the sum of their errors is small.
//
// For one item, only the candidates on the lower convex hull of (bytes, error) count: each step to the next one lowers
// the error by less for a byte than the step before. Steps of all items are made in the order of that gain for a byte,
// and a step that does not fit is left out together with the later ones of its item.
//
// The sum of errors is least for its own bytes while every step fits (it minimizes error + factor * bytes for the
// factor of the last step). For other budgets it is at most the gain of the first step left out above the least. A
// larger budget never has a larger sum: where the two choices first differ, the step that only the larger budget has
// room for gains more than all later steps that the smaller one makes in fewer bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace poise {

struct SizeCandidate {
  std::uint64_t bytes = 0;
  double error = 0;  // finite, not negative
};

class SizeSelection {
 public:
  // Requires: each item has a candidate.
  explicit SizeSelection(const std::vector<std::vector<SizeCandidate>>& items);

  // Returns the number of a candidate for each item; the smallest ones if they do not fit. Equal gains go to the first
  // item.
  std::vector<std::size_t> select(std::uint64_t budget) const;

  std::uint64_t least_bytes() const { return least_bytes_; }  // of the smallest candidates; 2^64 - 1 if larger

 private:
  struct Step {
    std::size_t item;
    std::size_t from;  // candidates
    std::size_t to;
    std::uint64_t bytes;  // more than before
    double gain;          // in error for each of them
  };

  std::vector<std::size_t> first_;  // the smallest candidate of each item
  std::uint64_t least_bytes_ = 0;
  std::vector<Step> steps_;
};

}  // namespace poise
