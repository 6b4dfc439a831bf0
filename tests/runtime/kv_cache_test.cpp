#include "runtime/kv_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace poise {
namespace {

constexpr std::size_t kLayers = 2;
constexpr std::size_t kWidth = 6;

float key_of(std::size_t layer, std::size_t position, std::size_t element) {
  return static_cast<float>(layer * 100'000 + position * 10 + element);
}

class KvCacheRing : public testing::Test {
 protected:
  void put_until(std::size_t end) {
    for (; next_ < end; ++next_) {
      cache_.reserve(next_ + 1);
      for (std::size_t layer = 0; layer < kLayers; ++layer) {
        std::vector<float> key(kWidth);
        for (std::size_t e = 0; e < kWidth; ++e) key[e] = key_of(layer, next_, e);
        std::vector<float> value(kWidth);
        std::ranges::transform(key, value.begin(), std::negate());
        cache_.put(layer, next_, key.data(), value.data());
      }
    }
  }

  void expect_all(const CachedHead& head) const {
    std::size_t position = head.first;
    for (const CachedKeys& keys : cache_.keys(head)) {
      for (std::size_t i = 0; i < keys.count; ++i, ++position) {
        const std::size_t slot = keys.begin + i;
        for (std::size_t e = 0; e < head.size; ++e) {
          ASSERT_EQ(keys.data[slot / kKeysTogether * keys.stride + e * kKeysTogether + slot % kKeysTogether],
                    key_of(head.layer, position, head.offset + e));
        }
      }
    }
    EXPECT_EQ(position, head.last);
    position = head.first;
    for (const FloatRows& values : cache_.values(head)) {
      for (std::size_t i = 0; i < values.count; ++i, ++position) {
        for (std::size_t e = 0; e < head.size; ++e)
          ASSERT_EQ(values.data[i * values.stride + e], -key_of(head.layer, position, head.offset + e));
      }
    }
    EXPECT_EQ(position, head.last);
  }

  static constexpr std::size_t kPositions = 150;  // no whole number of blocks
  KvCache cache_{kLayers, kWidth, kPositions};
  std::size_t next_ = 0;
};

TEST_F(KvCacheRing, GivesBackWhatWasPutWhileItGrows) {
  for (const std::size_t end : {1U, 63U, 64U, 65U, 128U, 129U, 150U}) {
    put_until(end);
    expect_all({0, 0, end, 0, kWidth});
    expect_all({1, end / 2, end, 2, 3});
    expect_all({1, end, end, 0, 1});
  }
}

TEST_F(KvCacheRing, HoldsTheLastPositionsWhenItWraps) {
  for (const std::size_t end : {151U, 191U, 192U, 193U, 256U, 300U, 500U, 1000U}) {
    put_until(end);
    expect_all({0, end - kPositions, end, 0, kWidth});
    expect_all({1, end - 1, end, 3, 3});
  }
}

TEST(KvCache, HoldsAsFewPositionsAsAreAskedFor) {
  for (const std::size_t positions : {1U, 5U, 64U}) {
    KvCache cache(1, 1, positions);
    cache.reserve(1000);  // what there is
    for (std::size_t position = 0; position < 300; ++position) {
      const auto number = static_cast<float>(position);
      cache.put(0, position, &number, &number);
      const std::size_t first = position + 1 - std::min(position + 1, positions);
      const auto values = cache.values({0, first, position + 1, 0, 1});
      ASSERT_EQ(values[0].count + values[1].count, position + 1 - first);
      ASSERT_EQ(values[0].data[0], static_cast<float>(first));
    }
  }
}

TEST(KvCache, LayersMayHoldDifferentNumbersOfPositions) {
  KvCache cache(1, std::vector<std::size_t>{300, 64});
  for (std::size_t position = 0; position < 300; ++position) {
    cache.reserve(position + 1);
    const auto number = static_cast<float>(position);
    for (const std::size_t layer : {0U, 1U}) cache.put(layer, position, &number, &number);
  }
  EXPECT_EQ(cache.values({0, 0, 300, 0, 1})[0].data[7], 7);
  const auto last = cache.values({1, 236, 300, 0, 1});
  EXPECT_EQ(last[0].data[0], 236);
  EXPECT_EQ(last[0].count + last[1].count, 64U);
}

}  // namespace
}  // namespace poise
