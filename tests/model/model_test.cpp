// Models: names stand once, and their limits, which every reader and writer relies on.
#include <poise/model.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <poise/blob.hpp>
#include <poise/error.hpp>

#include "model/limits.hpp"

namespace poise {
namespace {

using testing::HasSubstr;

Tensor empty(std::string name, Shape shape = {0}) {
  return make_dense(std::move(name), std::move(shape), DType::u8, make_memory_blob({}, "test"));
}

// Returns the message of the error that the call throws.
template <typename Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Model, FindsTensorsByName) {
  Model model;
  EXPECT_EQ(model.find("a"), nullptr);
  for (int i = 0; i < 1000; ++i) model.add(empty(fmt::format("tensor {}", i)));
  EXPECT_THAT(refusal([&] { model.add(empty("tensor 7")); }), HasSubstr("\"tensor 7\" appears twice"));
  EXPECT_EQ(model.size(), 1000U);
  const Model moved = std::move(model);
  for (const Tensor& tensor : moved.tensors()) EXPECT_EQ(moved.find(tensor.name), &tensor);
  EXPECT_EQ(moved.find("tensor 1000"), nullptr);
}

TEST(Model, HasNoMoreThanItsLimits) {
  Model model;
  EXPECT_NO_THROW(model.add(empty("deep", Shape(kMaxRank, 0))));
  EXPECT_THAT(refusal([&] { model.add(empty("deeper", Shape(kMaxRank + 1, 0))); }),
              HasSubstr("tensor deeper: more than 64 dimensions"));
  Tensor many = empty("many");
  many.parts.resize(kMaxTensorParts + 1, many.parts[0]);
  EXPECT_THAT(refusal([&] { model.add(many); }), HasSubstr("tensor many: more than 100000 parts"));
  many.parts.pop_back();
  for (std::size_t parts = 1; parts + kMaxTensorParts <= kMaxParts; parts += kMaxTensorParts) {
    many.name = fmt::format("many {}", parts);
    model.add(many);
  }
  many.name = "the rest";
  many.parts.resize(kMaxTensorParts - 1);
  model.add(std::move(many));
  EXPECT_THAT(refusal([&] { model.add(empty("one more")); }), HasSubstr("more than 4000000 parts"));
  Model full;
  for (std::size_t i = 0; i < kMaxTensors; ++i) full.add(empty(fmt::format("{}", i)));
  EXPECT_THAT(refusal([&] { full.add(empty("one more")); }), HasSubstr("more than 2000000 tensors"));
}

TEST(Vocabulary, HasNoMoreTokensThanTheLimit) {
  Vocabulary vocabulary;
  for (std::size_t i = 0; i < kMaxTokens; ++i) vocabulary.add("a", 0, TokenType::normal);
  EXPECT_THAT(refusal([&] { vocabulary.add("a", 0, TokenType::normal); }), HasSubstr("more than 500000 tokens"));
}

TEST(Vocabulary, SettingsAreCopiedAndComparedAsAWhole) {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::byte_pair;
  vocabulary.bos_id = 1;
  vocabulary.merges = {{"a", "b"}};
  vocabulary.add("a", 0, TokenType::normal);
  const Vocabulary other(vocabulary.settings());
  EXPECT_EQ(other.size(), 0U);
  EXPECT_TRUE(other.settings() == vocabulary.settings());
  EXPECT_FALSE(other == vocabulary);
  vocabulary.unk_id = 0;
  EXPECT_FALSE(other.settings() == vocabulary.settings());
  EXPECT_FALSE(other.special_ids() == vocabulary.special_ids());
}

TEST(Model, TakesAllOfAnotherExceptItsTensors) {
  Model model;
  model.card.author = "someone";
  model.config.emplace().hidden_size = 8;
  model.origin.format = "zt";
  model.attributes = {{"a", 1}};
  model.warnings.push_back({Severity::warning, "odd", {}, {}});
  model.add(empty("a"));
  const Model copy(model.header());
  EXPECT_EQ(copy.size(), 0U);
  EXPECT_EQ(copy.card, model.card);
  EXPECT_EQ(copy.config, model.config);
  EXPECT_EQ(copy.origin.format, "zt");
  EXPECT_EQ(copy.attributes, model.attributes);
  EXPECT_EQ(copy.warnings.size(), 1U);
}

}  // namespace
}  // namespace poise
