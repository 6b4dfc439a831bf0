// Lists the grid points near each place of a lattice. Encoders round numbers to a place first, and most places are not
// points of the grid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace poise {

// A place has coordinates from 0 to levels - 1, and its number is sum(coordinate i * levels^i). The list of a place
// that is a point has only this point. Other lists have the points at the nearest distances, ordered by distance, then
// by index. Their length is a multiple of kListStep: copies of the first point fill them up.
//
// A point is a word. Its index in the grid begins at bit kIndexShift; the lower bits have its coordinates, the first in
// the lowest bits. A coordinate has two bits if there are three levels, and three bits if there are eight.
struct GridNeighbours {
  static constexpr std::size_t kListStep = 8;
  static constexpr unsigned kIndexShift = 16;

  std::vector<std::uint32_t> points;
  std::vector<std::uint32_t> begins;  // of each place's list in `points`, and the end of the last

  std::span<const std::uint32_t> find_list(std::size_t place) const {
    return std::span(points).subspan(begins[place], begins[place + 1] - begins[place]);
  }
};

// Each function computes its lists, at most 1.5 MB, at the first call. Any number of threads may call it.
const GridNeighbours& get_iq2_xxs_neighbours();
const GridNeighbours& get_iq2_xs_neighbours();
const GridNeighbours& get_iq2_s_neighbours();
const GridNeighbours& get_iq3_xxs_neighbours();
const GridNeighbours& get_iq3_s_neighbours();
const GridNeighbours& get_iq1_neighbours();

}  // namespace poise
