#include "runtime/kv_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <poise/error.hpp>

#include "support/errors.hpp"

namespace poise {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kLayers = 2;
constexpr CachedHeads kHeads = {.count = 3, .size = 2};
constexpr std::size_t kWidth = 6;

// Returns a number that float16 holds exactly.
float key_of(std::size_t layer, std::size_t position, std::size_t element) {
  return static_cast<float>(layer * 1000 + position % 100 * 10 + element);
}

// Returns the keys or values of a position. Requires: a type without scales.
std::vector<float> numbers_of(const KvCache& cache, Cached what, std::size_t layer, std::size_t position) {
  std::vector<std::byte> codes(cache.width() * cache.type().count_code_bytes());
  cache.load(what, layer, position, codes.data(), nullptr);
  std::vector<float> numbers(cache.width());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (cache.type().type == CacheType::f32) {
      std::memcpy(&numbers[i], codes.data() + 4 * i, 4);
    } else {
      std::uint16_t code = 0;  // of a whole number below 2048
      std::memcpy(&code, codes.data() + 2 * i, 2);
      const double magnitude = (code & 0x7fffU) == 0 ? 0 : std::ldexp(1024 + code % 1024, (code >> 10U & 31U) - 25);
      numbers[i] = static_cast<float>(code >> 15U == 0 ? magnitude : -magnitude);
    }
  }
  return numbers;
}

class KvCacheRing : public testing::TestWithParam<CacheType> {
 protected:
  void put_until(std::size_t end) {
    for (; next_ < end; ++next_) {
      cache_.reserve(next_ + 1);
      for (std::size_t layer = 0; layer < kLayers; ++layer) {
        const std::vector<float> key = keys(layer, next_);
        std::vector<float> value(kWidth);
        std::ranges::transform(key, value.begin(), std::negate());
        cache_.encode_and_store(layer, next_, key.data(), value.data());
      }
    }
  }

  static std::vector<float> keys(std::size_t layer, std::size_t position) {
    std::vector<float> key(kWidth);
    for (std::size_t e = 0; e < kWidth; ++e) key[e] = key_of(layer, position, e);
    return key;
  }

  void expect_all(std::size_t layer, std::size_t first, std::size_t last) const {
    for (std::size_t position = first; position < last; ++position) {
      const std::vector<float> key = keys(layer, position);
      ASSERT_EQ(numbers_of(cache_, Cached::keys, layer, position), key);
      std::vector<float> value = numbers_of(cache_, Cached::values, layer, position);
      std::ranges::transform(value, value.begin(), [](float x) { return 0 - x; });
      ASSERT_EQ(value, key);
      if (GetParam() != CacheType::f32) continue;
      for (std::size_t head = 0; head < kHeads.count; ++head) {
        const CachedRun run = cache_.find_run(Cached::keys, layer, head, position, position + 1);
        ASSERT_EQ(run.first, position % kBlockPositions);
        for (std::size_t e = 0; e < kHeads.size; ++e) {
          float number = 0;
          std::memcpy(&number, run.block + (e * kBlockPositions + run.first) * sizeof number, sizeof number);
          ASSERT_EQ(number, key[head * kHeads.size + e]);
        }
      }
    }
  }

  static constexpr std::size_t kPositions = 150;  // no whole number of blocks
  KvCache cache_{GetParam(), kHeads, std::vector(kLayers, kPositions)};
  std::size_t next_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Types, KvCacheRing, testing::Values(CacheType::f32, CacheType::f16),
                         [](const auto& type) { return std::string(to_string(type.param)); });

TEST_P(KvCacheRing, GivesBackWhatWasPutWhileItGrows) {
  for (const std::size_t end : {1U, 63U, 64U, 65U, 128U, 129U, 150U}) {
    put_until(end);
    expect_all(0, 0, end);
    expect_all(1, end / 2, end);
    EXPECT_EQ(cache_.find_oldest_position(1), 0U);
  }
}

TEST_P(KvCacheRing, HoldsTheLastPositionsWhenItWraps) {
  for (const std::size_t end : {151U, 191U, 192U, 193U, 256U, 300U, 500U, 1000U}) {
    put_until(end);
    EXPECT_LE(cache_.find_oldest_position(0), end - kPositions);
    expect_all(0, end - kPositions, end);
    expect_all(1, end - 1, end);
  }
}

TEST(KvCache, CodesOfEightBitsHaveAScaleForEach32NumbersOfAHead) {
  constexpr CachedHeads kWide = {.count = 2, .size = 40};
  KvCache cache(CacheType::q8, kWide, {100});
  EXPECT_EQ(cache.count_scales(), 4U);
  cache.reserve(3);
  std::vector<float> key(80);
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<float>(i);
  std::vector<float> value(80, -127);
  cache.encode_and_store(0, 2, key.data(), value.data());
  std::array<std::int8_t, 80> codes = {};
  std::array<float, 4> scales = {};
  cache.load(Cached::values, 0, 2, reinterpret_cast<std::byte*>(codes.data()), scales.data());
  EXPECT_EQ(scales, (std::array<float, 4>{1, 1, 1, 1}));
  EXPECT_TRUE(std::ranges::all_of(codes, [](std::int8_t code) { return code == -127; }));
  cache.load(Cached::keys, 0, 2, reinterpret_cast<std::byte*>(codes.data()), scales.data());
  EXPECT_EQ(scales, (std::array<float, 4>{31.0F / 127, 39.0F / 127, 71.0F / 127, 79.0F / 127}));
  for (std::size_t i = 0; i < key.size(); ++i)
    EXPECT_NEAR(static_cast<float>(codes[i]) * scales[i / 40 * 2 + i % 40 / 32], key[i], 0.5F * 79 / 127) << i;

  // A loaded cache can be stored again.
  KvCache other(CacheType::q8, kWide, {100});
  other.reserve(3);
  other.store(Cached::keys, 0, 2, reinterpret_cast<const std::byte*>(codes.data()), scales.data());
  const CachedRun from = cache.find_run(Cached::keys, 0, 1, 2, 3);
  const CachedRun to = other.find_run(Cached::keys, 0, 1, 2, 3);
  EXPECT_EQ(std::memcmp(from.block, to.block, find_cache_type_row(CacheType::q8).count_block_bytes(40)), 0);
}

TEST(KvCache, NumbersThatFloat16DoesNotHoldAreRefused) {
  KvCache cache(CacheType::f16, {.count = 1, .size = 2}, {10, 10});
  cache.reserve(5);
  const std::array<float, 2> right = {65504, std::numeric_limits<float>::infinity()};  // is stored as infinity
  const std::array<float, 2> large = {1, -70000};
  cache.encode_and_store(1, 3, right.data(), right.data());
  const Error error = support::error_of([&] { cache.encode_and_store(1, 4, right.data(), large.data()); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.message(),
              HasSubstr("layer 1, position 4: the values have the number -70000, which a cache of f16 does not hold"));
}

TEST(KvCache, HoldsAsFewPositionsAsAreAskedFor) {
  for (const std::size_t positions : {1U, 5U, 64U}) {
    KvCache cache(CacheType::f32, {.count = 1, .size = 1}, {positions});
    cache.reserve(1000);  // what there is
    for (std::size_t position = 0; position < 300; ++position) {
      const auto number = static_cast<float>(position);
      cache.encode_and_store(0, position, &number, &number);
      const std::size_t first = position + 1 - std::min(position + 1, positions);
      ASSERT_LE(cache.find_oldest_position(0), first);
      ASSERT_EQ(numbers_of(cache, Cached::values, 0, first)[0], static_cast<float>(first));
    }
  }
}

TEST(KvCache, LayersMayHoldDifferentNumbersOfPositions) {
  KvCache cache(CacheType::f32, {.count = 1, .size = 1}, {300, 64});
  for (std::size_t position = 0; position < 300; ++position) {
    cache.reserve(position + 1);
    const auto number = static_cast<float>(position);
    for (const std::size_t layer : {0U, 1U}) cache.encode_and_store(layer, position, &number, &number);
  }
  EXPECT_EQ(numbers_of(cache, Cached::values, 0, 7)[0], 7);
  EXPECT_EQ(numbers_of(cache, Cached::values, 1, 236)[0], 236);
  EXPECT_EQ(cache.find_oldest_position(0), 0U);
  EXPECT_EQ(cache.find_oldest_position(1), 236U);
}

}  // namespace
}  // namespace poise
