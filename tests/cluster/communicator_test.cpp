// Sums and texts of all ranks.
#include "cluster/communicator.hpp"

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

TEST(Communicator, GathersTextsOfAnyLength) {
  support::ThreadRanks ranks(3);
  std::vector<std::vector<std::string>> found(3);
  ranks.run([&](std::size_t rank) { found[rank] = ranks[rank].gather(std::string(rank, 'x')); });
  for (const auto& texts : found) EXPECT_THAT(texts, ElementsAre("", "x", "xx"));
}

}  // namespace
}  // namespace poise
