#include "runtime/kv_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace poise {
namespace {

constexpr std::size_t kLayers = 2;
constexpr std::size_t kWidth = 6;

float key_of(std::size_t layer, std::size_t position, std::size_t element) { return static_cast<float>(layer * 100'000 + position * 10 + element); }

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
          ASSERT_EQ(keys.data[slot / kKeysTogether * keys.stride + e * kKeysTogether + slot % kKeysTogether], key_of(head.layer, position, head.offset + e));
        }
      }
    }
    EXPECT_EQ(position, head.last);
    position = head.first;
    for (const CachedRows& values : cache_.values(head)) {
      for (std::size_t i = 0; i < values.count; ++i, ++position) {
        for (std::size_t e = 0; e < head.size; ++e) ASSERT_EQ(values.data[i * values.stride + e], -key_of(head.layer, position, head.offset + e));
      }
    }
    EXPECT_EQ(position, head.last);
  }

  static constexpr std::size_t kPositions = 100;  // no whole number of blocks
  KvCache cache_{kLayers, kWidth, kPositions};
  std::size_t next_ = 0;
};

TEST_F(KvCacheRing, GivesBackWhatWasPutWhileItGrows) {
  for (const std::size_t end : {1U, 31U, 32U, 33U, 64U, 65U, 100U}) {
    put_until(end);
    expect_all({0, 0, end, 0, kWidth});
    expect_all({1, end / 2, end, 2, 3});
    expect_all({1, end, end, 0, 1});
  }
}

TEST_F(KvCacheRing, HoldsTheLastPositionsWhenItWraps) {
  for (const std::size_t end : {101U, 127U, 128U, 129U, 160U, 200U, 300U, 1000U}) {
    put_until(end);
    expect_all({0, end - kPositions, end, 0, kWidth});
    expect_all({1, end - 1, end, 3, 3});
  }
}

}  // namespace
}  // namespace poise
