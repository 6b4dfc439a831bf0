#include "runtime/attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include <tbb/task_arena.h>

#include "support/units.hpp"

namespace poise {
namespace {

constexpr std::size_t kSize = 20;
constexpr std::size_t kPositions = 200;

std::vector<float> random_floats(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

// Holds keys, values and queries of kPositions tokens.
struct Tokens {
  Tokens(const AttentionHeads& its_heads, std::mt19937& random)
      : heads(its_heads),
        keys(random_floats(kPositions * heads.kv_count * heads.size, random)),
        values(random_floats(keys.size(), random)),
        queries(random_floats(kPositions * heads.count * heads.size, random)) {}

  // Attends for the last `batch` tokens at once, in a cache for `positions`.
  std::vector<float> attended(std::size_t batch, std::size_t positions, CacheType type = CacheType::f32) const {
    const std::size_t width = heads.kv_count * heads.size;
    KvCache cache(type, {heads.kv_count, heads.size}, {positions});
    cache.reserve(kPositions);
    for (std::size_t p = 0; p < kPositions; ++p)
      cache.encode_and_store(0, p, keys.data() + p * width, values.data() + p * width);
    if (has_nan_after) {
      const std::vector<float> bad(width, std::numeric_limits<float>::quiet_NaN());
      cache.reserve(kPositions + 1);
      cache.encode_and_store(0, kPositions, bad.data(), bad.data());
    }
    std::vector<float> out(batch * heads.count * heads.size);
    std::vector<AttentionToken> tokens;
    for (std::size_t t = 0; t < batch; ++t) tokens.push_back({&cache, kPositions - batch + t});
    attend(tokens, 0, heads, Precision::fast, queries.data() + (kPositions - batch) * heads.count * heads.size,
           out.data());
    return out;
  }

  // Replaces keys and values with what a cache of the type holds.
  void round(CacheType type) {
    const std::size_t size = heads.size;
    KvCache cache(type, {1, size}, {kBlockPositions});
    cache.reserve(1);
    std::vector<float> block(kBlockPositions * size);
    for (std::size_t at = 0; at < keys.size(); at += size) {
      cache.encode_and_store(0, 0, keys.data() + at, values.data() + at);
      const CacheKernels& kernels = cache.type().kernels();
      kernels.decode_keys(cache.find_run(Cached::keys, 0, 0, 0, 1).block, size, block.data());
      for (std::size_t i = 0; i < size; ++i) keys[at + i] = block[i * kBlockPositions];
      kernels.decode_values(cache.find_run(Cached::values, 0, 0, 0, 1).block, size, block.data());
      std::copy_n(block.begin(), size, values.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  // Returns the results of the last `batch` tokens, computed in float64: for each token the elements of each head.
  std::vector<double> compute_expected(std::size_t batch) const {
    const double scale =
        heads.scale != 0 ? static_cast<double>(heads.scale) : 1 / std::sqrt(static_cast<double>(heads.size));
    const auto cap = static_cast<double>(heads.cap);
    std::vector<double> all;
    for (std::size_t token = kPositions - batch; token < kPositions; ++token) {
      const std::size_t first = heads.window == 0 || token + 1 <= heads.window ? 0 : token + 1 - heads.window;
      for (std::size_t head = 0; head < heads.count; ++head) {
        const std::size_t kv_head = head / (heads.count / heads.kv_count);
        std::vector<double> sums(heads.size);
        double weights = heads.sinks == nullptr ? 0 : std::exp(static_cast<double>(heads.sinks[head]));
        for (std::size_t p = first; p <= token; ++p) {
          const std::size_t at = (p * heads.kv_count + kv_head) * heads.size;
          double score = 0;
          for (std::size_t i = 0; i < heads.size; ++i)
            score += static_cast<double>(queries[(token * heads.count + head) * heads.size + i]) *
                     static_cast<double>(keys[at + i]);
          score *= scale;
          const double weight = std::exp(cap == 0 ? score : cap * std::tanh(score / cap));
          weights += weight;
          for (std::size_t e = 0; e < heads.size; ++e) sums[e] += weight * static_cast<double>(values[at + e]);
        }
        for (const double sum : sums) all.push_back(sum / weights);
      }
    }
    return all;
  }

  AttentionHeads heads;
  std::vector<float> keys;
  std::vector<float> values;
  std::vector<float> queries;
  bool has_nan_after = false;  // the cache has a position after those of the tokens, with NaN
};

// Returns the largest difference; infinity if there is a NaN, or another number of results.
double find_worst_error(const std::vector<float>& out, const std::vector<double>& expected) {
  if (out.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double error = std::abs(static_cast<double>(out[i]) - expected[i]);
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
  }
  return worst;
}

TEST(Attention, HeadsThatShareKeysAttendAsTheyWouldAlone) {
  std::mt19937 random(7);
  for (const std::size_t sharing : {1U, 2U, 3U, 4U, 5U, 8U}) {
    for (const std::size_t window : {0U, 70U}) {
      const Tokens tokens({2 * sharing, 2, kSize, window}, random);
      constexpr std::size_t kBatch = 3;
      const std::vector<float> out = tokens.attended(kBatch, kPositions);
      EXPECT_LE(find_worst_error(out, tokens.compute_expected(kBatch)), 1e-5) << sharing << " " << window;
      const std::vector<float> alone = tokens.attended(1, kPositions);
      EXPECT_TRUE(std::ranges::equal(alone, std::span(out).last(alone.size())));
      if (window != 0) {
        EXPECT_EQ(out, tokens.attended(kBatch, window + kBatch)) << "in a ring that wraps elsewhere";
      }
    }
  }
}

// Compares with float64 on the numbers before they were stored. The errors of scores and of values are small: f16
// rounds by 2^-11 of a number, q8 by half of 1/127 of the largest of 32.
TEST(Attention, OtherCachesRoundKeysAndValues) {
  std::mt19937 random(9);
  for (const auto& [type, most] : {std::pair{CacheType::f16, 3e-3}, std::pair{CacheType::q8, 5e-2}}) {
    for (const std::size_t window : {0U, 70U}) {
      const Tokens tokens({6, 2, kSize, window}, random);
      constexpr std::size_t kBatch = 40;
      const std::vector<float> out = tokens.attended(kBatch, kPositions, type);
      const double worst = find_worst_error(out, tokens.compute_expected(kBatch));
      EXPECT_LT(worst, most) << to_string(type);
      EXPECT_GT(worst, most / 100) << "it is another type";
      const std::vector<float> alone = tokens.attended(1, kPositions, type);
      EXPECT_TRUE(std::ranges::equal(alone, std::span(out).last(alone.size())));
      if (window != 0) {
        EXPECT_EQ(out, tokens.attended(kBatch, window + kBatch, type)) << "in a ring that wraps elsewhere";
      }
    }
  }
}

// Runs the test on the instruction set that multiplies panels of rounded numbers, if this machine has it.
template <typename Test>
void with_panels(Test&& test) {
  for (const Unit& unit : every_unit()) {
    const ChosenUnit chosen(unit);
    if (unit.tiles != TileUnit::none || !can_use_panels(32)) continue;
    SCOPED_TRACE(unit);
    test();
  }
}

TEST(Attention, PanelsOfSeveralSequencesAndThreadsHaveTheSameBits) {
  with_panels([] {
    for (const AttentionHeads& heads :
         {AttentionHeads{3, 1, 32}, AttentionHeads{10, 2, 64}, AttentionHeads{33, 1, 32}}) {
      const std::size_t width = heads.kv_count * heads.size;
      const std::size_t row = heads.count * heads.size;
      std::mt19937 random(17);
      constexpr std::array<std::size_t, 2> kTokens = {150, 40};  // both from position 0 on
      std::vector<KvCache> caches;
      for (const std::size_t count : kTokens) {
        KvCache& cache = caches.emplace_back(CacheType::f16, CachedHeads{heads.kv_count, heads.size},
                                             std::vector<std::size_t>{count});
        cache.reserve(count);
        const std::vector<float> numbers = random_floats(2 * count * width, random);
        for (std::size_t p = 0; p < count; ++p)
          cache.encode_and_store(0, p, numbers.data() + 2 * p * width, numbers.data() + (2 * p + 1) * width);
      }
      std::vector<AttentionToken> tokens;
      for (std::size_t s = 0; s < kTokens.size(); ++s) {
        for (std::size_t p = 0; p < kTokens[s]; ++p) tokens.push_back({&caches[s], p});
      }
      const std::vector<float> queries = random_floats(tokens.size() * row, random);
      std::vector<float> out(queries.size());
      std::vector<float> again(queries.size());
      attend(tokens, 0, heads, Precision::fast, queries.data(), out.data());
      for (const int threads : {1, 5}) {
        tbb::task_arena(threads).execute(
            [&] { attend(tokens, 0, heads, Precision::fast, queries.data(), again.data()); });
        EXPECT_EQ(out, again) << heads.count << " " << threads;
      }
      std::size_t first = 0;
      for (const std::size_t count : kTokens) {
        attend(std::span(tokens).subspan(first, count), 0, heads, Precision::fast, queries.data() + first * row,
               again.data() + first * row);
        first += count;
      }
      EXPECT_EQ(out, again) << "one sequence at a time";
    }
  });
}

// Takes tokens of two sequences in turn, with several numbers of threads.
TEST(Attention, ATokenAttendsAsItWouldAloneAmongThoseOfOtherSequences) {
  std::mt19937 random(10);
  const AttentionHeads heads = {8, 2, kSize};
  for (const CacheTypeRow& type : list_cache_types()) {
    std::vector<KvCache> caches(2, KvCache(type.type, {heads.kv_count, heads.size}, {kPositions}));
    for (KvCache& cache : caches) {
      cache.reserve(kPositions);
      for (std::size_t p = 0; p < kPositions; ++p) {
        const std::vector<float> numbers = random_floats(2 * cache.width(), random);
        cache.encode_and_store(0, p, numbers.data(), numbers.data() + cache.width());
      }
    }
    std::vector<AttentionToken> tokens;
    for (const std::size_t sequence : {0U, 1U}) {
      for (std::size_t p = 3; p < kPositions - 50 * sequence; ++p) tokens.push_back({&caches[sequence], p});
    }
    const std::size_t row = heads.count * heads.size;
    const std::vector<float> queries = random_floats(tokens.size() * row, random);
    std::vector<float> out(queries.size());
    attend(tokens, 0, heads, Precision::fast, queries.data(), out.data());
    std::vector<float> again(queries.size());
    tbb::task_arena(1).execute([&] { attend(tokens, 0, heads, Precision::fast, queries.data(), again.data()); });
    EXPECT_EQ(out, again) << type.name;
    for (std::size_t t = 0; t < tokens.size(); ++t)
      attend(std::span(tokens).subspan(t, 1), 0, heads, Precision::fast, queries.data() + t * row,
             again.data() + t * row);
    EXPECT_EQ(out, again) << type.name;
  }
}

TEST(Attention, ScoresAreScaledAndCappedAndHeadsMayHaveSinks) {
  std::mt19937 random(8);
  constexpr std::size_t kHeads = 10;  // five share keys, in tasks of four and one
  const std::vector<float> sinks = random_floats(kHeads, random);
  for (const AttentionHeads& heads :
       {AttentionHeads{kHeads, 2, kSize, 0, 0.5F}, AttentionHeads{kHeads, 2, kSize, 70, 0, 1.5F},
        AttentionHeads{kHeads, 2, kSize, 70, 0, 0, sinks.data()},
        AttentionHeads{kHeads, 2, kSize, 0, 0.3F, 2, sinks.data()}}) {
    const Tokens tokens(heads, random);
    constexpr std::size_t kBatch = 2;
    const std::vector<float> out = tokens.attended(kBatch, heads.window == 0 ? kPositions : heads.window + kBatch);
    EXPECT_LE(find_worst_error(out, tokens.compute_expected(kBatch)), 1e-5) << heads.cap;
  }
}

// Calls test() with each matrix unit that this machine has, and with one in ordinary code.
template <class Test>
void with_matrix_units(const Test& test) {
  for (const Unit& unit : every_unit()) {
    if (unit.tiles == TileUnit::none) continue;
    SCOPED_TRACE(unit);
    const ChosenUnit chosen(unit);
    test();
  }
}

TEST(Attention, ManyTokensOnAMatrixUnit) {
  with_matrix_units([] {
    std::mt19937 random(11);
    const std::vector<float> sinks = random_floats(8, random);
    for (const AttentionHeads& heads :
         {AttentionHeads{8, 1, 64}, AttentionHeads{2, 2, 32, 70}, AttentionHeads{6, 2, 96, 7, 0.3F},
          AttentionHeads{8, 2, 32, 0, 0, 1.5F, sinks.data()}, AttentionHeads{4, 2, 128, 64, 0, 0, sinks.data()}}) {
      const Tokens tokens(heads, random);
      constexpr std::size_t kBatch = 40;
      // Errors of weights are those of scores, which are as large as their scale and the square root of the size.
      const double spread =
          heads.scale == 0 ? 1 : static_cast<double>(heads.scale) * std::sqrt(static_cast<double>(heads.size));
      const double most = 3e-5 * std::max(1.0, spread);
      const std::vector<float> out = tokens.attended(kBatch, kPositions);
      EXPECT_LE(find_worst_error(out, tokens.compute_expected(kBatch)), most) << heads.size;
      // Results have the same bits for any number of tokens that is large enough for tiles.
      const std::vector<float> fewer = tokens.attended(11, kPositions);
      EXPECT_TRUE(std::ranges::equal(fewer, std::span(out).last(fewer.size())));
      if (heads.window != 0) {
        EXPECT_EQ(out, tokens.attended(kBatch, heads.window + kBatch)) << "in a ring that wraps elsewhere";
      }
    }
  });
}

TEST(Attention, OtherCachesOnAMatrixUnit) {
  with_matrix_units([] {
    std::mt19937 random(12);
    for (const auto& [type, most] : {std::pair{CacheType::f16, 3e-3}, std::pair{CacheType::q8, 5e-2}}) {
      const Tokens tokens({4, 2, 64, 70}, random);
      const std::vector<float> out = tokens.attended(20, kPositions, type);
      const double worst = find_worst_error(out, tokens.compute_expected(20));
      EXPECT_LT(worst, most) << to_string(type);
      EXPECT_GT(worst, most / 100) << "it is another type";
    }
  });
}

// Computes the expected numbers in float64 from what the cache holds, so that the differences are those of attention.
TEST(Attention, ManyTokensAsPanels) {
  with_panels([] {
    std::mt19937 random(14);
    const std::vector<float> sinks = random_floats(8, random);
    for (const AttentionHeads& heads :
         {AttentionHeads{8, 1, 64}, AttentionHeads{2, 2, 32, 70}, AttentionHeads{6, 2, 96, 7, 0.3F},
          AttentionHeads{8, 2, 32, 0, 0, 1.5F, sinks.data()}, AttentionHeads{4, 2, 128, 64, 0, 0, sinks.data()},
          AttentionHeads{6, 2, 160, 130}, AttentionHeads{2, 1, 320}}) {
      for (const CacheType type : {CacheType::f16, CacheType::q8}) {
        Tokens tokens(heads, random);
        tokens.round(type);
        constexpr std::size_t kBatch = 150;
        const double spread =
            heads.scale == 0 ? 1 : static_cast<double>(heads.scale) * std::sqrt(static_cast<double>(heads.size));
        const double most = 2e-3 * std::max(1.0, spread);
        const std::vector<float> out = tokens.attended(kBatch, kPositions, type);
        const std::vector<double> expected = tokens.compute_expected(kBatch);
        EXPECT_LE(find_worst_error(out, expected), most) << heads.size << to_string(type);
        double squares = 0;
        for (std::size_t i = 0; i < out.size(); ++i)
          squares += (static_cast<double>(out[i]) - expected[i]) * (static_cast<double>(out[i]) - expected[i]);
        EXPECT_LT(std::sqrt(squares / static_cast<double>(out.size())), most / 10) << heads.size << to_string(type);
        // The result of a token does not depend on the tokens with it, nor on positions that it does not see.
        const std::vector<float> fewer = tokens.attended(140, kPositions, type);
        EXPECT_TRUE(std::ranges::equal(fewer, std::span(out).last(fewer.size()))) << heads.size;
        if (heads.window == 0) {
          tokens.has_nan_after = true;
          EXPECT_EQ(out, tokens.attended(kBatch, kPositions + 1, type)) << heads.size;
        }
        const std::size_t seen = kPositions - 20;
        const std::size_t width = heads.kv_count * heads.size;
        std::fill(tokens.keys.begin() + static_cast<std::ptrdiff_t>(seen * width), tokens.keys.end(), 100.0F);
        std::fill(tokens.values.begin() + static_cast<std::ptrdiff_t>(seen * width), tokens.values.end(), 100.0F);
        const std::vector<float> other = tokens.attended(kBatch, kPositions, type);
        const std::size_t same = (kBatch - 20) * heads.count * heads.size;
        EXPECT_TRUE(std::ranges::equal(std::span(other).first(same), std::span(out).first(same))) << heads.size;
        if (heads.window != 0) {
          EXPECT_EQ(other, tokens.attended(kBatch, heads.window + kBatch, type)) << "in a ring that wraps elsewhere";
        }
      }
    }
  });
}

// Trained heads give most of their weight to the first token, whose value is small. The other weights must not become
// coarse. Element 0 of keys adds 7.7 to the score of one position, which then has nine tenths of the weight.
TEST(Attention, PanelsKeepSmallWeightsNextToALargeOne) {
  with_panels([] {
    for (const std::size_t position : {std::size_t{0}, std::size_t{10}}) {
      std::mt19937 random(16);
      Tokens tokens({4, 2, 64}, random);
      for (std::size_t i = 0; i < tokens.queries.size(); i += 64) tokens.queries[i] = 8;
      for (std::size_t i = 0; i < tokens.keys.size(); i += 64) tokens.keys[i] = i / 64 / 2 == position ? 7.7F : 0;
      for (std::size_t i = 0; i < 2 * 64; ++i) tokens.values[position * 2 * 64 + i] *= 0.01F;
      tokens.round(CacheType::f16);
      constexpr std::size_t kBatch = 150;
      const std::vector<float> out = tokens.attended(kBatch, kPositions, CacheType::f16);
      double errors = 0;
      double squares = 0;
      const std::vector<double> expected = tokens.compute_expected(kBatch);
      for (std::size_t i = 0; i < out.size(); ++i) {
        errors += (static_cast<double>(out[i]) - expected[i]) * (static_cast<double>(out[i]) - expected[i]);
        squares += expected[i] * expected[i];
      }
      EXPECT_LT(std::sqrt(errors / squares), 2e-3) << position;
    }
  });
}

TEST(Attention, PanelsNeedManyRowsAndACacheThatRounds) {
  with_panels([] {
    std::mt19937 random(15);
    const Tokens tokens({4, 2, 32}, random);
    const std::vector<float> all = tokens.attended(100, kPositions);
    const std::vector<float> one = tokens.attended(1, kPositions);
    EXPECT_TRUE(std::ranges::equal(one, std::span(all).last(one.size()))) << "float32 stays float32";
    const std::vector<float> few = tokens.attended(16, kPositions, CacheType::f16);
    const std::vector<float> last = tokens.attended(1, kPositions, CacheType::f16);
    EXPECT_TRUE(std::ranges::equal(last, std::span(few).last(last.size())));
    const std::vector<float> many = tokens.attended(100, kPositions, CacheType::f16);
    EXPECT_FALSE(std::ranges::equal(last, std::span(many).last(last.size()))) << "panels round";
  });
}

// Zero times a number that is not finite is NaN: a token must not meet what it does not see.
TEST(Attention, ValuesThatAreNotFiniteSpoilOnlyTokensThatSeeThem) {
  const auto test = [](std::size_t batch, CacheType type) {
    std::mt19937 random(13);
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      Tokens tokens({2, 1, 32}, random);
      const std::vector<float> sound = tokens.attended(batch, kPositions, type);
      tokens.values[(kPositions - 5) * 32] = bad;
      const std::vector<float> out = tokens.attended(batch, kPositions, type);
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (i / 64 >= batch - 5 && i % 32 == 0) {
          EXPECT_FALSE(std::isfinite(out[i])) << i;
        } else {
          EXPECT_NEAR(out[i], sound[i], type == CacheType::f32 ? 1e-5F : 2e-3F) << i;
        }
      }
    }
  };
  with_matrix_units([&] { test(20, CacheType::f32); });
  with_panels([&] { test(100, CacheType::f16); });
}

}  // namespace
}  // namespace poise
