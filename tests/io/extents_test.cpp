#include "io/extents.hpp"

#include <gtest/gtest.h>

namespace poise {
namespace {

// Returns the indices of the two extents that overlap, in the order of their beginnings.
using Two = std::optional<std::pair<std::uint32_t, std::uint32_t>>;

Two overlap(std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges) {
  std::vector<Extent> extents;
  for (const auto& [begin, length] : ranges)
    extents.push_back({begin, length, static_cast<std::uint32_t>(extents.size())});
  const auto found = find_overlap(std::move(extents));
  if (!found) return std::nullopt;
  return std::pair(found->first.tensor, found->second.tensor);
}

TEST(Extents, MayTouchAndRepeat) {
  EXPECT_EQ(overlap({}), Two());
  EXPECT_EQ(overlap({{64, 8}}), Two());
  EXPECT_EQ(overlap({{64, 8}, {72, 8}}), Two());
  EXPECT_EQ(overlap({{72, 8}, {64, 8}}), Two());
  EXPECT_EQ(overlap({{64, 8}, {72, 8}, {64, 8}, {64, 8}}), Two());
  EXPECT_EQ(overlap({{UINT64_MAX - 8, 8}, {0, 8}}), Two());
}

TEST(Extents, OverlapIsFoundWhereverItIs) {
  EXPECT_EQ(overlap({{64, 8}, {71, 8}}), Two({0, 1}));
  EXPECT_EQ(overlap({{71, 8}, {64, 8}}), Two({1, 0}));
  EXPECT_EQ(overlap({{64, 8}, {64, 9}}), Two({0, 1}));
  EXPECT_EQ(overlap({{64, 9}, {64, 8}}), Two({1, 0}));
  EXPECT_EQ(overlap({{0, 4}, {64, 100}, {80, 4}, {200, 4}}), Two({1, 2}));
  EXPECT_EQ(overlap({{64, 8}, {64, 8}, {70, 2}}), Two({1, 2}));
  EXPECT_EQ(overlap({{0, UINT64_MAX}, {UINT64_MAX - 1, 1}}), Two({0, 1}));
}

// Comparing neighbours suffices, because a long extent overlaps its neighbour first.
TEST(Extents, ALongExtentOverlapsRepeatedOnes) { EXPECT_EQ(overlap({{64, 100}, {80, 4}, {80, 4}}), Two({0, 1})); }

TEST(Extents, GapsAreInNoRange) {
  using Ranges = std::vector<FileRange>;
  EXPECT_EQ(find_gaps({}), Ranges());
  EXPECT_EQ(find_gaps({{0, 8}, {8, 16}}), Ranges());
  EXPECT_EQ(find_gaps({{32, 40}, {8, 16}}), (Ranges{{0, 8}, {16, 32}}));
  EXPECT_EQ(find_gaps({{0, 100}, {10, 20}, {120, 130}}), (Ranges{{100, 120}}));
  EXPECT_EQ(find_gaps({{4, 4}}), (Ranges{{0, 4}}));
}

}  // namespace
}  // namespace poise
