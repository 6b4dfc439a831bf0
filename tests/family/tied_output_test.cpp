// Embeddings that are the output matrix, too. tests/runtime/tied_outputs.py checks what such models compute.
#include "family/tied_output.hpp"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/convert.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>

#include "family/families.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kOutput = "lm_head.weight";

Tensor matrix(const std::string& name, std::vector<float> values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  const std::uint64_t rows = values.size() / 2;
  return make_dense(name, {rows, 2}, DType::f32, make_memory_blob(std::move(bytes), name));
}

Model tied(std::vector<Tensor> tensors) {
  Model model;
  model.card.model_type = "llama";
  model.config.emplace();
  model.config->tie_word_embeddings = true;
  for (Tensor& tensor : tensors) model.add(std::move(tensor));
  return model;
}

std::vector<std::string> names(const Model& model) {
  std::vector<std::string> result;
  for (const Tensor& tensor : model.tensors()) result.emplace_back(tensor.name);
  return result;
}

TEST(TiedOutput, TheOutputMatrixAloneIsTheEmbedding) {
  const auto resolved =
      resolve_tied_output(tied({matrix("a", {0, 0}), matrix(kOutput, {1, 2, 3, 4}), matrix("z", {0, 0})}));
  ASSERT_TRUE(resolved);
  EXPECT_THAT(names(*resolved), ElementsAre("a", kEmbedding, "z"));
  EXPECT_TRUE(resolved->config->tie_word_embeddings);
  EXPECT_TRUE(resolved->warnings.empty());
  EXPECT_FALSE(resolve_tied_output(*resolved));
}

TEST(TiedOutput, ACopyIsLeftOutAndReported) {
  const auto resolved = resolve_tied_output(tied({matrix(kEmbedding, {1, 2}), matrix(kOutput, {1, 2})}));
  ASSERT_TRUE(resolved);
  EXPECT_THAT(names(*resolved), ElementsAre(kEmbedding));
  ASSERT_EQ(resolved->warnings.size(), 1U);
  EXPECT_EQ(resolved->warnings[0].message,
            "tensor lm_head.weight is left out: it equals model.embed_tokens.weight (tie_word_embeddings)");
}

TEST(TiedOutput, SharedBytesAreNotReportedAsACopy) {
  Tensor output = matrix(kEmbedding, {1, 2});
  std::vector<Tensor> tensors = {output, output};
  tensors[1].name = kOutput;
  const auto resolved = resolve_tied_output(tied(std::move(tensors)));
  ASSERT_TRUE(resolved);
  EXPECT_THAT(names(*resolved), ElementsAre(kEmbedding));
  EXPECT_TRUE(resolved->warnings.empty());
}

TEST(TiedOutput, ACopyInAnotherTypeHasEqualNumbers) {
  Tensor half = matrix(kOutput, {1, 2});
  half = make_dense(kOutput, half.shape, DType::bf16, make_dense_blob(half, DType::bf16));
  EXPECT_THAT(names(*resolve_tied_output(tied({matrix(kEmbedding, {1, 2}), half}))), ElementsAre(kEmbedding));
  EXPECT_EQ(resolve_tied_output(tied({matrix(kEmbedding, {1, 2.001F}), half}))->size(), 2U);
}

TEST(TiedOutput, OtherNumbersStayAndEndTheTie) {
  Model model = tied({matrix(kEmbedding, {1, 2}), matrix(kOutput, {1, 3})});
  model.config_json = {{"tie_word_embeddings", true}, {"other", 1}};
  const auto resolved = resolve_tied_output(model);
  ASSERT_TRUE(resolved);
  EXPECT_THAT(names(*resolved), ElementsAre(kEmbedding, kOutput));
  EXPECT_FALSE(resolved->config->tie_word_embeddings);
  EXPECT_EQ(*whole_config(*resolved).find("tie_word_embeddings"), Value(false));
  ASSERT_EQ(resolved->warnings.size(), 1U);
  EXPECT_THAT(resolved->warnings[0].message, HasSubstr("lm_head.weight differs from model.embed_tokens.weight"));
}

TEST(TiedOutput, ANestedConfigurationIsUntiedToo) {
  Model model;
  model.card.model_type = "gemma3";
  model.config.emplace();
  model.config_json = {{"model_type", "gemma3"}, {"text_config", Attributes{{"hidden_size", 8}}}};
  model.config->tie_word_embeddings = true;
  untie_output(model);
  EXPECT_FALSE(model.config->tie_word_embeddings);
  EXPECT_EQ(*find_family_keys(find_family_or_llama(model), model.config_json).find("tie_word_embeddings"),
            Value(false));
}

TEST(TiedOutput, ModelsWithoutATieStayAsTheyAre) {
  Model model = tied({matrix(kEmbedding, {1, 2}), matrix(kOutput, {1, 2})});
  model.config->tie_word_embeddings = false;
  EXPECT_FALSE(resolve_tied_output(model));
  model.config.reset();
  EXPECT_FALSE(resolve_tied_output(model));
  EXPECT_FALSE(resolve_tied_output(tied({matrix(kEmbedding, {1, 2})})));
}

// This holds for models in memory, too: readers of these formats multiply by a stored output matrix.
TEST(TiedOutput, ConversionsOfModelsInMemoryLeaveACopyOut) {
  const Model copy = tied({matrix(kEmbedding, {1, 2}), matrix(kOutput, {1, 2})});
  const Model other = tied({matrix(kEmbedding, {1, 2}), matrix(kOutput, {1, 3})});
  for (const char* format : {"alt", "alt1", "gguf", "safetensors", "zt"}) {
    EXPECT_EQ(plan(copy, format).tensors.size(), 1U) << format;
    EXPECT_EQ(plan(other, format).tensors.size(), 2U) << format;
  }
}

TEST(Aliases, NameStoredTensors) {
  Model model;
  model.add(matrix(kOutput, {1, 2}));
  model.attributes = {{"format", kOutput}, {kEmbedding, kOutput}, {"title", "x"}, {kOutput, kOutput}};
  const auto resolved = resolve_aliases(model);
  ASSERT_TRUE(resolved);
  EXPECT_THAT(names(*resolved), ElementsAre(kOutput, kEmbedding));
  EXPECT_EQ(resolved->attributes.size(), 3U);
  EXPECT_EQ(resolved->attributes.find(kEmbedding), nullptr);
  EXPECT_FALSE(resolve_aliases(*resolved));
}

}  // namespace
}  // namespace poise
