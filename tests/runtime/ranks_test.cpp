// Ranks in threads of one process, which sum at a barrier, against the whole model.
#include "runtime/transformer.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/stored_type.hpp>
#include <poise/values.hpp>

#include "family/config_json.hpp"
#include "family/families.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using ::testing::HasSubstr;

// The share of each rank.
class SumAtBarrier {
 public:
  explicit SumAtBarrier(std::size_t count) : parts_(count), barrier_(static_cast<std::ptrdiff_t>(count)) {}

  void operator()(std::size_t rank, std::span<float> numbers) {
    parts_[rank] = numbers;
    barrier_.arrive_and_wait();
    if (rank == 0) {
      total_.assign(numbers.size(), 0.0F);
      for (const std::span<float> part : parts_) {
        for (std::size_t i = 0; i < total_.size(); ++i) total_[i] += part[i];
      }
      ++sums_;
    }
    barrier_.arrive_and_wait();
    std::ranges::copy(total_, numbers.begin());
  }

  std::size_t sums() const { return sums_; }

 private:
  std::vector<std::span<float>> parts_;
  std::vector<float> total_;
  std::size_t sums_ = 0;
  std::barrier<> barrier_;
};

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
  for (const ExpectedTensor& expected : find_family(model_type)->tensors.all(config_view(model))) {
    std::vector<float> numbers(*element_count(expected.shape));
    for (float& number : numbers) number = (expected.shape.size() == 1 ? 0.5F : 0.2F) * normal(random);
    Tensor tensor = make_tensor(expected.name, expected.shape, numbers);
    const bool is_matrix = expected.shape.size() == 2 && expected.shape[1] % 32 == 0;
    model.add(is_matrix && type != "f32" ? quantized(tensor, *stored_type_from_name(type)) : std::move(tensor));
  }
  return model;
}

// The scores after each of a prompt and three more tokens.
std::vector<float> logits_of(const Transformer& transformer, CacheType cache = CacheType::f32) {
  Workspace memory;
  memory.precision = Precision::exact;
  Sequence sequence = transformer.begin(64, cache);
  std::vector<float> result;
  TokenId next = 7;
  for (const std::size_t count : {20U, 1U, 1U, 1U}) {
    std::vector<TokenId> tokens(count);
    for (TokenId& token : tokens) token = next = (next * 13 + 5) % static_cast<TokenId>(kVocabulary);
    transformer.forward(std::array{SequenceTokens{&sequence, tokens}}, memory);
    std::vector<float> logits(transformer.vocabulary_size());
    transformer.logits(std::array{count - 1}, memory, logits.data());
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
                      Case{"qwen2"}, Case{"qwen2", "{}", "q8_0"}, Case{"qwen2", "{}", "group8:32"}, Case{"qwen3"},
                      Case{"mixtral", kMixtral}, Case{"mixtral", kMixtral, "q8_0"}, Case{"mixtral", kMixtral, "q4_0"},
                      Case{"mixtral", kMixtral, "group4:32"}, Case{"gemma2", kGemma2}, Case{"gemma2", kGemma2, "q8_0"},
                      Case{"gemma2", kGemma2, "q4_0"}, Case{"gemma2", kGemma2, "group4:32"},
                      Case{"phi3"},                 // q, k and v in one matrix, and gate and up in another
                      Case{"phi3", "{}", "q4_0"},   //
                      Case{"gpt2", kGpt2},          // matrices [in, out], biases everywhere
                      Case{"gpt2", kGpt2, "q8_0"},  //
                      Case{"gpt_oss", kGptOss}));   // sinks, experts in stacks, gate and up by turns

TEST_P(RanksOf, MakeTheScoresOfTheWhole) {
  const Case& given = GetParam();
  const Model model = random_family(given.model_type, given.keys, given.type);
  const std::vector<float> expected = logits_of(*make_transformer(model));
  const float largest = std::abs(*std::ranges::max_element(expected, {}, [](float x) { return std::abs(x); }));
  ASSERT_TRUE(std::isfinite(largest));
  for (const std::size_t count : {2U, 4U}) {
    SumAtBarrier sum(count);
    std::vector<std::unique_ptr<const Transformer>> transformers;
    for (std::size_t rank = 0; rank < count; ++rank) {
      transformers.push_back(make_transformer(
          model,
          {.rank = rank, .count = count, .sum = [&sum, rank](std::span<float> numbers) { sum(rank, numbers); }}));
    }
    std::vector<std::vector<float>> found(count);
    {
      std::vector<std::jthread> threads;
      for (std::size_t rank = 0; rank < count; ++rank)
        threads.emplace_back([&, rank] { found[rank] = logits_of(*transformers[rank]); });
    }
    EXPECT_EQ(sum.sums(), 4 * 2 * kLayers);
    for (const std::vector<float>& of_rank : found) {
      EXPECT_EQ(of_rank, found[0]) << "all ranks have the same bits";
      ASSERT_EQ(of_rank.size(), expected.size());
      float worst = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, std::abs(of_rank[i] - expected[i]));
      EXPECT_LT(worst, 2e-5F * largest) << count;
    }
  }
}

TEST(Ranks, ShareUnitsWithoutGapsEvenIfTheyDoNotDivide) {
  for (const std::size_t count : {1U, 2U, 3U, 7U}) {
    std::size_t next = 0;
    for (std::size_t rank = 0; rank < count; ++rank) {
      const IndexRange share = Ranks{rank, count}.share(10);
      EXPECT_EQ(share.first, next);
      EXPECT_GE(share.size(), 10 / count);
      next = share.last;
    }
    EXPECT_EQ(next, 10U);
  }
}

std::string refusal(const Model& model, std::size_t count) {
  const Error error = support::error_of([&] { (void)make_transformer(model, {.rank = count - 1, .count = count}); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  return error.message();
}

TEST(Ranks, WhatDoesNotDivideIsRefused) {
  EXPECT_THAT(refusal(random_family("llama", "{}", "f32"), 3),
              HasSubstr("8 heads of queries and 4 of keys and values do not divide among 3 ranks"));
  EXPECT_THAT(refusal(random_family("llama", "{}", "f32"), 8), HasSubstr("do not divide among 8 ranks"));
  EXPECT_THAT(refusal(random_family("llama", R"({"intermediate_size": 96})", "q8_0"), 4),
              HasSubstr("tensor model.layers.0.mlp.down_proj.weight: 96 inner numbers in steps of 32 do not divide "
                        "among 4 ranks"));
  EXPECT_THAT(refusal(random_family("llama", R"({"head_dim": 8})", "q8_0"), 4),
              HasSubstr("tensor model.layers.0.self_attn.o_proj.weight cannot be used as a weight: parts of its rows "
                        "begin at multiples of 32 numbers, not at 48"));
  EXPECT_THAT(refusal(random_family("olmo2", "{}", "f32"), 2),
              HasSubstr("model.layers.0.self_attn.q_norm norms all heads together"));
}

}  // namespace
}  // namespace poise
