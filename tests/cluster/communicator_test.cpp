// Sums and texts of all ranks.
#include "cluster/communicator.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/thread_ranks.hpp"

namespace poise {
namespace {

using ::testing::ElementsAre;

// The sum of 1e8, 1 and -1e8 depends on the order.
TEST(Communicator, SumsInTheOrderOfRanks) {
  constexpr float kParts[] = {1e8F, 1, -1e8F, 3};
  support::ThreadRanks ranks(4);
  std::vector<std::vector<float>> found(4);
  ranks.run([&](std::size_t rank) {
    found[rank] = {kParts[rank], static_cast<float>(rank)};
    ranks[rank].sum(found[rank]);
  });
  for (const auto& numbers : found) EXPECT_THAT(numbers, ElementsAre(((1e8F + 1) + -1e8F) + 3, 6));
}

TEST(Communicator, SumsManyNumbersInSlices) {
  constexpr std::size_t kNumbers = 100'001;
  support::ThreadRanks ranks(3);
  const auto part = [](std::size_t rank, std::size_t i) { return std::sin(static_cast<float>(rank * kNumbers + i)); };
  std::vector<std::vector<float>> found(3);
  ranks.run([&](std::size_t rank) {
    for (std::size_t i = 0; i < kNumbers; ++i) found[rank].push_back(part(rank, i));
    ranks[rank].sum(found[rank]);
  });
  EXPECT_EQ(ranks.exchanges(0), 2U);
  for (std::size_t i = 0; i < kNumbers; ++i) ASSERT_EQ(found[0][i], part(0, i) + part(1, i) + part(2, i));
  EXPECT_EQ(found[1], found[0]);
  EXPECT_EQ(found[2], found[0]);
}

TEST(Communicator, GathersTextsOfAnyLength) {
  support::ThreadRanks ranks(3);
  std::vector<std::vector<std::string>> found(3);
  ranks.run([&](std::size_t rank) { found[rank] = ranks[rank].gather(std::string(rank, 'x')); });
  for (const auto& texts : found) EXPECT_THAT(texts, ElementsAre("", "x", "xx"));
}

}  // namespace
}  // namespace poise
