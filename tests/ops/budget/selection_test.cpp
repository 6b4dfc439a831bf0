// The selection of types, against all combinations.
#include "ops/budget/budget.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace poise {
namespace {

using Items = std::vector<std::vector<SizeCandidate>>;

// Sums up the chosen candidates.
SizeCandidate add_up(const Items& items, const std::vector<std::size_t>& chosen) {
  SizeCandidate sum;
  for (std::size_t i = 0; i < items.size(); ++i) {
    sum.bytes += items[i][chosen[i]].bytes;
    sum.error += items[i][chosen[i]].error;
  }
  return sum;
}

// Returns the least sum of errors of all combinations that fit the budget.
double find_least_error(const Items& items, std::uint64_t budget, std::size_t item = 0, SizeCandidate so_far = {}) {
  if (so_far.bytes > budget) return std::numeric_limits<double>::infinity();
  if (item == items.size()) return so_far.error;
  double least = std::numeric_limits<double>::infinity();
  for (const SizeCandidate& candidate : items[item]) {
    const SizeCandidate next = {so_far.bytes + candidate.bytes, so_far.error + candidate.error};
    least = std::min(least, find_least_error(items, budget, item + 1, next));
  }
  return least;
}

// Errors are whole numbers, so that sums are exact.
Items make_items(std::mt19937& random) {
  Items items(2 + random() % 4);
  for (auto& candidates : items) {
    candidates.resize(1 + random() % 5);
    for (SizeCandidate& candidate : candidates) candidate = {1 + random() % 40, static_cast<double>(random() % 1000)};
  }
  return items;
}

TEST(SizeSelection, TakesTheSmallestCandidatesIfNothingElseFits) {
  const SizeSelection selection({{{10, 0}, {4, 3}, {4, 2}}, {{7, 1}}});
  EXPECT_EQ(selection.least_bytes(), 11U);
  EXPECT_THAT(selection.select(0), testing::ElementsAre(2, 0));
  EXPECT_THAT(selection.select(16), testing::ElementsAre(2, 0));
  EXPECT_THAT(selection.select(17), testing::ElementsAre(0, 0));
}

// By hand: a step of the first item gains 4 a byte, and then 1; one of the second gains 2.
TEST(SizeSelection, MakesTheStepsWithTheLargestGainFirst) {
  const SizeSelection selection({{{1, 10}, {3, 2}, {5, 0}}, {{1, 6}, {4, 0}}});
  EXPECT_THAT(selection.select(4), testing::ElementsAre(1, 0));
  EXPECT_THAT(selection.select(6), testing::ElementsAre(2, 0));  // 3 more bytes do not fit, 2 do
  EXPECT_THAT(selection.select(7), testing::ElementsAre(1, 1));
  EXPECT_THAT(selection.select(9), testing::ElementsAre(2, 1));
}

TEST(SizeSelection, SkipsCandidatesAboveTheHull) {
  // The middle one saves less for a byte than the way to the last one does.
  const SizeSelection selection({{{1, 10}, {2, 9}, {3, 0}}});
  EXPECT_THAT(selection.select(2), testing::ElementsAre(0));
  EXPECT_THAT(selection.select(3), testing::ElementsAre(2));
}

TEST(SizeSelection, FitsTheBudgetAndNeverLosesByMoreRoom) {
  std::mt19937 random(52);
  for (int round = 0; round < 300; ++round) {
    const Items items = make_items(random);
    const SizeSelection selection(items);
    double before = std::numeric_limits<double>::infinity();
    for (std::uint64_t budget = selection.least_bytes(); budget < 210; ++budget) {
      const SizeCandidate sum = add_up(items, selection.select(budget));
      EXPECT_LE(sum.bytes, budget);
      EXPECT_LE(sum.error, before);
      before = sum.error;
    }
  }
}

// The choice is the best of all combinations where each step fits, and elsewhere within the largest step of it.
TEST(SizeSelection, IsAsGoodAsTheBestCombination) {
  std::mt19937 random(8);
  for (int round = 0; round < 200; ++round) {
    const Items items = make_items(random);
    const SizeSelection selection(items);
    double largest_step = 0;
    std::uint64_t all = 0;
    for (const auto& candidates : items) {
      const auto [least, most] = std::ranges::minmax(candidates, {}, &SizeCandidate::error);
      largest_step = std::max(largest_step, most.error - least.error);
      all += std::ranges::max(candidates, {}, &SizeCandidate::bytes).bytes;
    }
    for (std::uint64_t budget = selection.least_bytes(); budget <= all; ++budget) {
      const SizeCandidate sum = add_up(items, selection.select(budget));
      EXPECT_LE(sum.error, find_least_error(items, budget) + largest_step);
    }
    EXPECT_EQ(add_up(items, selection.select(all)).error, find_least_error(items, all));
  }
}

// Items of one convex curve: every step has the same bytes, so no room is left over, and the choice is the best one.
TEST(SizeSelection, IsTheBestCombinationWhereNoRoomIsLeftOver) {
  std::mt19937 random(17);
  for (int round = 0; round < 100; ++round) {
    Items items(3);
    for (auto& candidates : items) {
      double error = 0;
      double slope = 0;
      for (std::uint64_t bytes = 8; bytes >= 1; --bytes) {
        candidates.push_back({bytes, error});
        error += slope += static_cast<double>(random() % 50);
      }
    }
    const SizeSelection selection(items);
    for (std::uint64_t budget = 3; budget <= 24; ++budget)
      EXPECT_EQ(add_up(items, selection.select(budget)).error, find_least_error(items, budget));
  }
}

}  // namespace
}  // namespace poise
