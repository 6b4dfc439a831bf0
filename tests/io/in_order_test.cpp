#include "io/threads.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace poise {
namespace {

// Counts the objects that exist. None may remain after a failure.
struct Item {
  Item() { ++alive; }
  ~Item() { --alive; }
  Item(const Item&) = delete;
  Item& operator=(const Item&) = delete;

  std::size_t number = 0;
  bool in_use = false;
  static inline std::atomic<int> alive = 0;
};

constexpr std::size_t kCount = 200;

struct Trial {
  // Fails at these steps.
  void operator()(std::size_t cut_failure, std::vector<std::size_t> make_failures, std::size_t use_failure) {
    process_in_order<Item>(
        [&](Item& item) {
          EXPECT_FALSE(item.in_use);
          if (next == cut_failure) throw std::runtime_error("cut");
          if (next == kCount) return false;
          item.number = next++;
          item.in_use = true;
          return true;
        },
        [&](Item& item) {
          if (item.number % 3 == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(300));  // so that others come first
          if (std::ranges::find(make_failures, item.number) != make_failures.end())
            throw std::runtime_error("make " + std::to_string(item.number));
          ++made;
        },
        [&](Item& item) {
          if (item.number == use_failure) throw std::runtime_error("use");
          if (item.number % 50 < 5) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // so that many wait
          used.push_back(item.number);
          item.in_use = false;
        });
  }

  std::size_t next = 0;
  std::atomic<std::size_t> made = 0;
  std::vector<std::size_t> used;
};

constexpr std::size_t kNone = kCount + 1;

TEST(InOrder, EveryItemIsMadeOnceAndUsedInTurn) {
  Trial run;
  run(kNone, {}, kNone);
  EXPECT_EQ(run.made, kCount);
  ASSERT_EQ(run.used.size(), kCount);
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_EQ(run.used[i], i);
  EXPECT_EQ(Item::alive, 0);
}

TEST(InOrder, OfSeveralFailuresTheFirstItemsIsThrown) {
  for (int i = 0; i < 20; ++i) {
    Trial run;
    EXPECT_THAT([&] { run(kNone, {91, 90, 93}, kNone); }, ::testing::ThrowsMessage<std::runtime_error>("make 90"));
    EXPECT_EQ(run.used.size(), 90);
    EXPECT_EQ(Item::alive, 0);
  }
}

// Items that wait for their turn must be freed, too (found by fuzzing).
TEST(InOrder, AFailureLeavesNothingBehind) {
  for (int i = 0; i < 20; ++i) {
    Trial cut;
    EXPECT_THAT([&] { cut(57, {}, kNone); }, ::testing::ThrowsMessage<std::runtime_error>("cut"));
    EXPECT_EQ(Item::alive, 0);
    Trial use;
    EXPECT_THAT([&] { use(kNone, {}, 60); }, ::testing::ThrowsMessage<std::runtime_error>("use"));
    EXPECT_EQ(use.used.size(), 60);
    EXPECT_EQ(Item::alive, 0);
  }
}

TEST(InOrder, AcceptsNoItems) {
  process_in_order<Item>([](Item&) { return false; }, [](Item&) { FAIL(); }, [](Item&) { FAIL(); });
  EXPECT_EQ(Item::alive, 0);
}

}  // namespace
}  // namespace poise
