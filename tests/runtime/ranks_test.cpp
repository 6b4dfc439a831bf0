// Compares ranks in threads of one process with the whole model.
#include "runtime/transformer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/stored_type.hpp>
#include <poise/values.hpp>

#include "family/config_json.hpp"
#include "family/families.hpp"
#include "runtime/weights.hpp"
#include "support/errors.hpp"
#include "support/thread_ranks.hpp"

namespace poise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kLayers = 2;
constexpr std::size_t kVocabulary = 64;

Model random_family(std::string_view model_type, std::string_view own_keys, std::string_view type) {
  const Value common = parse_json(
      R"({"hidden_size": 64, "intermediate_size": 256, "num_attention_heads": 8, "num_key_value_heads": 4,
          "num_hidden_layers": 2, "head_dim": 16, "vocab_size": 64, "max_position_embeddings": 256})",
      "common");
  const Value own = parse_json(std::string(own_keys), "own");
  Attributes json{{"model_type", model_type}};
  if (model_type != "gpt2") {
    for (const auto& [key, value] : *common.get_if<Attributes>()) json.set(key, value);
  }
  for (const auto& [key, value] : *own.get_if<Attributes>()) json.set(key, value);
  Model model;
  parse_config(model, json, "config.json");
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const ExpectedTensor& expected : find_family(model_type)->tensors.list_all(make_config_view(model))) {
    std::vector<float> numbers(*element_count(expected.shape));
    for (float& number : numbers) number = (expected.shape.size() == 1 ? 0.5F : 0.2F) * normal(random);
    Tensor tensor = make_tensor(expected.name, expected.shape, numbers);
    const bool is_matrix = expected.shape.size() == 2 && expected.shape[1] % 32 == 0;
    model.add(is_matrix && type != "f32" ? quantized(tensor, *stored_type_from_name(type)) : std::move(tensor));
  }
  return model;
}

// Returns the scores after a prompt and after each of three more tokens.
std::vector<float> logits_of(const Transformer& transformer, CacheType cache = CacheType::f32) {
  Workspace memory;
  memory.precision = Precision::exact;
  Sequence sequence = transformer.make_sequence(64, cache);
  std::vector<float> result;
  TokenId next = 7;
  for (const std::size_t count : {20U, 1U, 1U, 1U}) {
    std::vector<TokenId> tokens(count);
    for (TokenId& token : tokens) token = next = (next * 13 + 5) % static_cast<TokenId>(kVocabulary);
    transformer.forward(std::array{SequenceTokens{&sequence, tokens}}, memory);
    std::vector<float> logits(transformer.vocabulary_size());
    transformer.compute_logits(std::array{count - 1}, memory, logits.data());
    result.insert(result.end(), logits.begin(), logits.end());
  }
  return result;
}

struct Case {
  std::string_view model_type;
  std::string_view keys = "{}";
  std::string_view type = "f32";
};

void PrintTo(const Case& test_case, std::ostream* out) {
  *out << test_case.model_type << " " << test_case.keys << " " << test_case.type;
}

class RanksOf : public ::testing::TestWithParam<Case> {};

constexpr std::string_view kMixtral = R"({"num_local_experts": 4, "num_experts_per_tok": 2})";
constexpr std::string_view kGemma2 = R"({"sliding_window": 8})";
constexpr std::string_view kMlpBias = R"({"attention_bias": true, "mlp_bias": true})";
constexpr std::string_view kGpt2 =
    R"({"n_positions": 256, "n_embd": 128, "n_layer": 2, "n_head": 8, "n_inner": 256, "vocab_size": 64})";
constexpr std::string_view kGptOss =
    R"({"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8,
        "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "truncate": false}})";

INSTANTIATE_TEST_SUITE_P(
    Models, RanksOf,
    ::testing::Values(Case{"llama"}, Case{"llama", "{}", "q8_0"}, Case{"llama", "{}", "q4_0"},
                      Case{"llama", "{}", "group4:32"}, Case{"llama", kMlpBias}, Case{"llama", kMlpBias, "qint4"},
                      Case{"olmo2"}, Case{"olmo2", "{}", "q8_0"}, Case{"qwen2"}, Case{"qwen2", "{}", "q8_0"},
                      Case{"qwen2", "{}", "group8:32"}, Case{"qwen3"}, Case{"mixtral", kMixtral},
                      Case{"mixtral", kMixtral, "q8_0"}, Case{"mixtral", kMixtral, "q4_0"},
                      Case{"mixtral", kMixtral, "group4:32"}, Case{"gemma2", kGemma2}, Case{"gemma2", kGemma2, "q8_0"},
                      Case{"gemma2", kGemma2, "q4_0"}, Case{"gemma2", kGemma2, "group4:32"},
                      Case{"phi3"},                 // q, k and v in one matrix, and gate and up in another
                      Case{"phi3", "{}", "q4_0"},   //
                      Case{"gpt2", kGpt2},          // matrices [in, out], biases everywhere
                      Case{"gpt2", kGpt2, "q8_0"},  //
                      Case{"gpt_oss", kGptOss}));   // sinks, experts in stacks, gate and up by turns

using support::ThreadRanks;

// Returns what each rank computes.
std::vector<std::vector<float>> logits_of_ranks(const Model& model, ThreadRanks& ranks, RankSplit split,
                                                CacheType cache = CacheType::f32) {
  std::vector<std::vector<float>> found(ranks.size());
  ranks.run([&](std::size_t rank) { found[rank] = logits_of(*make_transformer(model, {&ranks[rank], split}), cache); });
  return found;
}

TEST_P(RanksOf, MakeTheScoresOfTheWhole) {
  const Case& given = GetParam();
  const Model model = random_family(given.model_type, given.keys, given.type);
  const std::vector<float> expected = logits_of(*make_transformer(model));
  const float largest = std::abs(*std::ranges::max_element(expected, {}, [](float x) { return std::abs(x); }));
  ASSERT_TRUE(std::isfinite(largest));
  // 3 does not divide the heads. 5 ranks share some of the 4 heads of keys and values, 7 do not divide the queries of
  // any. Of 11, some have no heads.
  for (const std::size_t count : {2U, 3U, 4U, 5U, 7U, 11U}) {
    SCOPED_TRACE(count);
    ThreadRanks ranks(count);
    const auto found = logits_of_ranks(model, ranks, RankSplit::heads);
    for (const std::vector<float>& of_rank : found) {
      EXPECT_EQ(of_rank, found[0]) << "all ranks have the same bits";
      ASSERT_EQ(of_rank.size(), expected.size());
      float worst = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, std::abs(of_rank[i] - expected[i]));
      EXPECT_LT(worst, 1e-5F * largest);
    }
  }
}

TEST_P(RanksOf, MakeTheBitsOfTheWholeFromLayers) {
  const Case& given = GetParam();
  const Model model = random_family(given.model_type, given.keys, given.type);
  const std::vector<float> expected = logits_of(*make_transformer(model));
  for (const std::size_t count : {2U, 3U}) {
    ThreadRanks ranks(count);
    for (const std::vector<float>& of_rank : logits_of_ranks(model, ranks, RankSplit::layers))
      EXPECT_EQ(of_rank, expected) << count;
  }
}

// Sums after `o` and `down` of each layer, and one exchange for the scores; with layers, one for each rank and one for
// the scores.
TEST(Ranks, ExchangeBytesAFewTimesAToken) {
  const Model model = random_family("llama", "{}", "f32");
  ThreadRanks by_heads(2);
  (void)logits_of_ranks(model, by_heads, RankSplit::heads);
  EXPECT_EQ(by_heads.exchanges(1), 4 * (2 * kLayers + 1));
  ThreadRanks by_layers(2);
  (void)logits_of_ranks(model, by_layers, RankSplit::layers);
  EXPECT_EQ(by_layers.exchanges(1), 4 * (2 + 1));
}

TEST(Ranks, KeepTheHiddenStatesOfEveryLayer) {
  const Model model = random_family("llama", R"({"num_hidden_layers": 4})", "f32");
  const auto kept_of = [](const Transformer& transformer, std::size_t layer) {
    Workspace memory;
    memory.precision = Precision::exact;
    memory.kept_layer = layer;
    Sequence sequence = transformer.make_sequence(64, CacheType::f32);
    transformer.forward(std::array{SequenceTokens{&sequence, std::array<TokenId, 3>{5, 6, 7}}}, memory);
    return memory.kept;
  };
  for (const std::size_t layer : {0U, 1U, 3U, 4U}) {
    const std::vector<float> expected = kept_of(*make_transformer(model), layer);
    ThreadRanks ranks(3);
    std::vector<std::vector<float>> found(3);
    ranks.run([&](std::size_t rank) {
      found[rank] = kept_of(*make_transformer(model, {&ranks[rank], RankSplit::layers}), layer);
    });
    for (const std::vector<float>& of_rank : found) EXPECT_EQ(of_rank, expected) << layer;
  }
}

// A layer with a window drops positions: every rank has to know.
TEST(Ranks, DropTheSamePositions) {
  const Model model = random_family("gemma2", kGemma2, "f32");
  ThreadRanks ranks(2);
  std::vector<int> has_cut(2, -1);
  ranks.run([&](std::size_t rank) {
    const auto transformer = make_transformer(model, {&ranks[rank], RankSplit::layers});
    Workspace memory;
    Sequence sequence = transformer->make_sequence(4096, CacheType::f16);
    const std::vector<TokenId> tokens(400, 3);
    for (int i = 0; i < 4; ++i) transformer->forward(std::array{SequenceTokens{&sequence, tokens}}, memory);
    has_cut[rank] = transformer->truncate(20, sequence) ? 1 : 0;
  });
  EXPECT_EQ(has_cut, (std::vector<int>{0, 0}));
}

struct Dealt {
  std::vector<std::size_t> counts;  // of each rank's heads
  std::vector<std::size_t> kv_heads;
};

Dealt deal(std::size_t heads, std::size_t kv_heads, std::size_t count) {
  ThreadRanks ranks(count);
  Dealt dealt;
  std::size_t next = 0;
  std::size_t keys = 0;
  for (std::size_t rank = 0; rank < count; ++rank) {
    const HeadShare share = Ranks{&ranks[rank]}.find_heads(heads, kv_heads);
    EXPECT_EQ(share.heads.first, next) << "without gaps";
    next = share.heads.last;
    if (share.is_first) keys += share.kv_heads.size();
    for (std::size_t head = share.heads.first; head < share.heads.last; ++head) {
      const std::size_t kv_head = head / (heads / kv_heads);
      EXPECT_TRUE(share.kv_heads.first <= kv_head && kv_head < share.kv_heads.last) << rank << " " << head;
    }
    dealt.counts.push_back(share.heads.size());
    dealt.kv_heads.push_back(share.kv_heads.size());
  }
  EXPECT_EQ(next, heads);
  EXPECT_EQ(keys, kv_heads) << "one rank counts each";
  return dealt;
}

TEST(Ranks, DealHeadsWithoutGaps) {
  EXPECT_THAT(deal(8, 4, 3).kv_heads, ElementsAre(1, 1, 2));
  EXPECT_THAT(deal(8, 4, 4).counts, ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(deal(8, 2, 4).counts, ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(deal(8, 2, 4).kv_heads, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(deal(4, 4, 8).counts, ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  for (const std::size_t count : {1U, 2U, 3U, 5U, 6U, 7U, 9U, 13U, 64U}) {
    for (const std::size_t kv_heads : {1U, 2U, 7U, 14U}) (void)deal(14, kv_heads, count);
  }
}

TEST(Ranks, ShareUnitsWithoutGapsEvenIfTheyDoNotDivide) {
  for (const std::size_t count : {1U, 2U, 3U, 7U}) {
    ThreadRanks ranks(count);
    std::size_t next = 0;
    for (std::size_t rank = 0; rank < count; ++rank) {
      const IndexRange share = Ranks{&ranks[rank]}.find_share(10);
      EXPECT_EQ(share.first, next);
      EXPECT_GE(share.size(), 10 / count);
      next = share.last;
      EXPECT_EQ(Ranks{&ranks[0]}.find_owner(share.first, 10), rank);
    }
    EXPECT_EQ(next, 10U);
  }
}

// A matrix whose blocks do not divide is cut within them: by zeros next to the heads, or as float32.
TEST(Ranks, DoNotNeedWholeBlocks) {
  for (const std::string_view keys :
       {R"({"intermediate_size": 96})", R"({"head_dim": 8})", R"({"head_dim": 8, "intermediate_size": 32})"}) {
    SCOPED_TRACE(keys);
    const Model model = random_family("llama", keys, "q8_0");
    const std::vector<float> expected = logits_of(*make_transformer(model));
    const float largest = std::abs(*std::ranges::max_element(expected, {}, [](float x) { return std::abs(x); }));
    for (const std::size_t count : {3U, 4U}) {
      ThreadRanks ranks(count);
      const auto found = logits_of_ranks(model, ranks, RankSplit::heads);
      for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(found[0][i], expected[i], 1e-5F * largest);
    }
  }
}

TEST(Ranks, WithOtherModelsAreRefused) {
  const Model model = random_family("llama", "{}", "f32");
  const Model other = random_family("llama", R"({"rms_norm_eps": 0.5})", "f32");
  ThreadRanks ranks(3);
  std::vector<std::string> messages(3);
  ranks.run([&](std::size_t rank) {
    messages[rank] =
        support::error_of([&] { (void)load_weights(rank == 1 ? other : model, Ranks{&ranks[rank]}); }).message();
  });
  EXPECT_THAT(messages[0], HasSubstr("rank 1 has another model than rank 0: the digests of their headers are "));
  EXPECT_EQ(messages[1], messages[0]);
  EXPECT_EQ(messages[2], messages[0]);
}

}  // namespace
}  // namespace poise
