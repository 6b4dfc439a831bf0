#include "codec/blocks/grid_neighbours.hpp"

#include <algorithm>
#include <array>

#include "codec/blocks/grids.hpp"

namespace poise {
namespace {

constexpr std::size_t kMostDistances = 256;  // squared distances are at most 4 * 7^2 or 8 * 2^2

// Holds a grid. Each coordinate is an index into the sorted list of numbers that occur in the grid.
struct Levels {
  std::size_t count = 0;                               // of different numbers
  std::size_t coordinates = 0;                         // of a point
  std::vector<std::array<std::uint8_t, 8>> of_points;  // each uses its first `coordinates` numbers

  std::size_t count_bits() const { return count > 4 ? 3 : 2; }

  // Returns how many places there are with `some` coordinates.
  std::size_t count_places(std::size_t some) const {
    std::size_t places = 1;
    for (std::size_t i = 0; i < some; ++i) places *= count;
    return places;
  }
};

template <typename Point, std::size_t kPoints>
Levels find_levels(const std::array<Point, kPoints>& grid) {
  const auto coordinate = [](Point point, std::size_t i) { return static_cast<std::int8_t>(point >> (8 * i) & 255); };
  std::vector<std::int8_t> numbers;
  for (const Point point : grid) {
    for (std::size_t i = 0; i < sizeof(Point); ++i) numbers.push_back(coordinate(point, i));
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  Levels levels{numbers.size(), sizeof(Point), std::vector<std::array<std::uint8_t, 8>>(kPoints)};
  for (std::size_t point = 0; point < kPoints; ++point) {
    for (std::size_t i = 0; i < sizeof(Point); ++i)
      levels.of_points[point][i] =
          static_cast<std::uint8_t>(std::ranges::lower_bound(numbers, coordinate(grid[point], i)) - numbers.begin());
  }
  return levels;
}

// Computes the squared distances of all points from all places, in half of the coordinates: from `first` on. The
// distance of point p from place q is element q * (number of points) + p.
std::vector<std::uint8_t> compute_half_distances(const Levels& levels, std::size_t first) {
  const std::size_t half = levels.coordinates / 2;
  std::vector<std::uint8_t> distances;
  for (std::size_t place = 0; place < levels.count_places(half); ++place) {
    for (const auto& point : levels.of_points) {
      int distance = 0;
      std::size_t rest = place;
      for (std::size_t i = 0; i < half; ++i, rest /= levels.count) {
        const int difference = static_cast<int>(point[first + i]) - static_cast<int>(rest % levels.count);
        distance += difference * difference;
      }
      distances.push_back(static_cast<std::uint8_t>(distance));
    }
  }
  return distances;
}

// Appends the points that have one of the `nearest` smallest distances, then pads the list to a multiple of kListStep.
void append_nearest(std::span<const std::uint8_t> distances, std::size_t nearest, std::span<const std::uint32_t> words,
                    std::vector<std::uint32_t>& out) {
  std::array<bool, kMostDistances> occurs{};
  for (const std::uint8_t distance : distances) occurs[distance] = true;
  const std::size_t begin = out.size();
  for (std::size_t distance = 0; distance < kMostDistances && nearest > 0; ++distance) {
    if (!occurs[distance]) continue;
    --nearest;
    for (std::size_t point = 0; point < distances.size(); ++point) {
      if (distances[point] == distance) out.push_back(words[point]);
    }
  }
  while ((out.size() - begin) % GridNeighbours::kListStep != 0) out.push_back(out[begin]);
}

// Computes the lists of all places. The points of a list have at most `nearest` different distances.
template <typename Point, std::size_t kPoints>
GridNeighbours find_neighbours(const std::array<Point, kPoints>& grid, std::size_t nearest) {
  const Levels levels = find_levels(grid);
  const std::size_t halves = levels.count_places(levels.coordinates / 2);
  const std::vector<std::uint8_t> low = compute_half_distances(levels, 0);
  const std::vector<std::uint8_t> high = compute_half_distances(levels, levels.coordinates / 2);
  std::array<std::uint32_t, kPoints> words{};
  for (std::size_t point = 0; point < kPoints; ++point) {
    words[point] = static_cast<std::uint32_t>(point << GridNeighbours::kIndexShift);
    for (std::size_t i = 0; i < levels.coordinates; ++i)
      words[point] |= std::uint32_t{levels.of_points[point][i]} << (levels.count_bits() * i);
  }
  GridNeighbours all;
  std::array<std::uint8_t, kPoints> distances{};
  for (std::size_t place = 0; place < halves * halves; ++place) {
    all.begins.push_back(static_cast<std::uint32_t>(all.points.size()));
    const std::uint8_t* const from_low = low.data() + place % halves * kPoints;
    const std::uint8_t* const from_high = high.data() + place / halves * kPoints;
    for (std::size_t point = 0; point < kPoints; ++point)
      distances[point] = static_cast<std::uint8_t>(from_low[point] + from_high[point]);
    if (const auto here = std::ranges::find(distances, 0); here != distances.end()) {
      all.points.push_back(words[static_cast<std::size_t>(here - distances.begin())]);
    } else {
      append_nearest(distances, nearest, words, all.points);
    }
  }
  all.begins.push_back(static_cast<std::uint32_t>(all.points.size()));
  all.points.shrink_to_fit();
  return all;
}

}  // namespace

// The numbers of distances, 1 to 3, are ggml's choices.

const GridNeighbours& get_iq2_xxs_neighbours() {
  static const GridNeighbours all = find_neighbours(kGridIq2Xxs, 2);
  return all;
}

const GridNeighbours& get_iq2_xs_neighbours() {
  static const GridNeighbours all = find_neighbours(kGridIq2Xs, 2);
  return all;
}

const GridNeighbours& get_iq2_s_neighbours() {
  static const GridNeighbours all = find_neighbours(kGridIq2S, 1);
  return all;
}

const GridNeighbours& get_iq3_xxs_neighbours() {
  static const GridNeighbours all = find_neighbours(kGridIq3Xxs, 2);
  return all;
}

const GridNeighbours& get_iq3_s_neighbours() {
  static const GridNeighbours all = find_neighbours(kGridIq3S, 3);
  return all;
}

const GridNeighbours& get_iq1_neighbours() {
  static const GridNeighbours all = find_neighbours(kGridIq1, 3);
  return all;
}

}  // namespace poise
