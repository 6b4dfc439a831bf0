// gpt-oss's experts, stacked and separate. How they are stored: modeling_gpt_oss.py of transformers,
// conversion/gpt_oss.py of llama.cpp.
#include "family/expert_stacks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/values.hpp>

#include "family/check.hpp"
#include "family/config_effects.hpp"
#include "family/config_json.hpp"
#include "family/families.hpp"
#include "schemes/scheme.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using support::error_of;

constexpr std::uint64_t kHidden = 32;
constexpr std::uint64_t kInner = 64;
constexpr std::uint64_t kCount = 3;
constexpr std::string_view kExperts = "model.layers.0.mlp.experts.";

Tensor floats(std::string name, const Shape& shape, std::mt19937& random) {
  std::vector<float> values(*element_count(shape));
  for (float& value : values) value = static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
  return make_tensor(std::move(name), shape, values);
}

Tensor bytes(std::string name, const Shape& shape, std::mt19937& random, unsigned first, unsigned count) {
  std::vector<std::byte> data(*element_count(shape));
  for (std::byte& byte : data) byte = static_cast<std::byte>(first + random() % count);
  return make_dense(std::move(name), shape, DType::u8, make_memory_blob(std::move(data), "memory"));
}

Model without_experts(std::string_view more) {
  Model model;
  parse_config(
      model,
      *parse_json(
           fmt::format(
               R"({{{}"model_type": "gpt_oss", "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2,
      "num_key_value_heads": 2, "num_hidden_layers": 1, "head_dim": 16, "vocab_size": 8, "num_local_experts": 3, "num_experts_per_tok": 2,
      "rope_scaling": {{"rope_type": "yarn", "factor": 2.0}}}})",
               more),
           "config.json")
           .get_if<Attributes>(),
      "config.json");
  std::mt19937 random(1);
  const auto add = [&](const std::string& name, const Shape& shape) {
    model.add(floats("model." + name, shape, random));
  };
  add("embed_tokens.weight", {8, kHidden});
  for (const char* const which : {"q", "k", "v", "o"}) {
    add(fmt::format("layers.0.self_attn.{}_proj.weight", which), {32, 32});
    add(fmt::format("layers.0.self_attn.{}_proj.bias", which), {32});
  }
  add("layers.0.self_attn.sinks", {2});
  add("layers.0.input_layernorm.weight", {kHidden});
  add("layers.0.post_attention_layernorm.weight", {kHidden});
  add("layers.0.mlp.router.weight", {kCount, kHidden});
  add("layers.0.mlp.router.bias", {kCount});
  add("norm.weight", {kHidden});
  model.add(floats("lm_head.weight", {8, kHidden}, random));
  return model;
}

std::string named(std::string_view name) { return std::string(kExperts).append(name); }

Model numbers() {
  Model model = without_experts("");
  std::mt19937 random(2);
  model.add(floats(named("gate_up_proj"), {kCount, kHidden, 2 * kInner}, random));
  model.add(floats(named("gate_up_proj_bias"), {kCount, 2 * kInner}, random));
  model.add(floats(named("down_proj"), {kCount, kInner, kHidden}, random));
  model.add(floats(named("down_proj_bias"), {kCount, kHidden}, random));
  return model;
}

// Returns the model as the published directories have it.
Model parts(std::string_view more = R"("quantization_config": {"quant_method": "mxfp4"}, )") {
  Model model = without_experts(more);
  std::mt19937 random(3);
  model.add(bytes(named("gate_up_proj_blocks"), {kCount, 2 * kInner, kHidden / 32, 16}, random, 0, 256));
  model.add(bytes(named("gate_up_proj_scales"), {kCount, 2 * kInner, kHidden / 32}, random, 120, 10));
  model.add(floats(named("gate_up_proj_bias"), {kCount, 2 * kInner}, random));
  model.add(bytes(named("down_proj_blocks"), {kCount, kHidden, kInner / 32, 16}, random, 0, 256));
  model.add(bytes(named("down_proj_scales"), {kCount, kHidden, kInner / 32}, random, 120, 10));
  model.add(floats(named("down_proj_bias"), {kCount, kHidden}, random));
  return model;
}

Model packed() { return fold_matrices(parts()); }

Model made(const Model& model, WeightReader reader, bool as_numbers = false) {
  auto result = convert_weights(model, reader, as_numbers);
  EXPECT_TRUE(result);
  EXPECT_THAT(result->losses, IsEmpty());
  EXPECT_THAT(check_consistency(result->model), IsEmpty());
  EXPECT_THAT(find_unknown_weights(result->model), IsEmpty());
  EXPECT_THAT(list_ignored_effects(result->model), IsEmpty());
  return std::move(result->model);
}

void expect_equal(const Model& found, const Model& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const Tensor& tensor : expected.tensors()) {
    const Tensor* other = found.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(other->shape, tensor.shape) << tensor.name;
    EXPECT_EQ(other->layout, tensor.layout) << tensor.name;
    for (const Part& part : tensor.parts) {
      EXPECT_EQ(other->require(part.role).dtype, part.dtype) << tensor.name;
      EXPECT_EQ(read_all(*other->require(part.role).blob), read_all(*part.blob)) << tensor.name;
    }
  }
}

TEST(GptOssExperts, NumbersComeBackFromSeparateExperts) {
  const Model model = numbers();
  EXPECT_THAT(check_consistency(model), IsEmpty());
  const Model separate = made(model, WeightReader::llama_cpp);
  const std::vector<float> all = values(*model.find(named("gate_up_proj")));
  const std::vector<float> up = values(*separate.find(named("1.up_proj.weight")));
  ASSERT_EQ(up.size(), kInner * kHidden);
  for (std::uint64_t row = 0; row < kInner; ++row) {
    for (std::uint64_t column = 0; column < kHidden; ++column) {
      ASSERT_EQ(up[row * kHidden + column], all[(kHidden + column) * 2 * kInner + 2 * row + 1]) << row << " " << column;
    }
  }
  EXPECT_EQ(values(*separate.find(named("2.down_proj.bias"))).at(5),
            values(*model.find(named("down_proj_bias"))).at(2 * kHidden + 5));
  expect_equal(made(separate, WeightReader::transformers), model);
  EXPECT_FALSE(convert_weights(separate, WeightReader::llama_cpp, false));
  EXPECT_FALSE(convert_weights(separate, WeightReader::any, true));
  EXPECT_FALSE(convert_weights(model, WeightReader::transformers, true));
}

TEST(GptOssExperts, CodesComeBackFromSeparateExperts) {
  const Model model = packed();
  EXPECT_THAT(check_consistency(model), IsEmpty());
  EXPECT_THAT(list_ignored_effects(model), IsEmpty());
  const Model separate = made(model, WeightReader::llama_cpp);
  EXPECT_EQ(separate.find(named("0.gate_proj.weight"))->layout.name(), "gguf.mxfp4/1");
  const Model reread = made(separate, WeightReader::transformers);
  expect_equal(reread, model);
  EXPECT_EQ(*reread.config_json.get_if<Attributes>("quantization_config")->find("quant_method"), Value("mxfp4"));
  EXPECT_FALSE(convert_weights(model, WeightReader::any, false));
  EXPECT_FALSE(convert_weights(model, WeightReader::transformers, false));
}

TEST(GptOssExperts, ADirectoryHasThePartsAsTheyWere) {
  const support::TemporaryDirectory directory;
  const Model model = packed();
  save(model, directory / "again", "huggingface");
  const Model raw = open(directory / "again", {.raw = true});
  expect_equal(raw, parts());
  EXPECT_EQ(*raw.config_json.find("quantization_config"), *parts().config_json.find("quantization_config"));
  expect_equal(open(directory / "again"), model);
}

TEST(GptOssExperts, CodesBecomeTheSameNumbersByEitherWay) {
  const Model model = packed();
  const Model once = made(model, WeightReader::transformers, true);
  const Model twice = made(made(model, WeightReader::llama_cpp), WeightReader::transformers, true);
  for (const std::string_view name : {"gate_up_proj", "gate_up_proj_bias", "down_proj", "down_proj_bias"}) {
    EXPECT_EQ(values(*twice.find(named(name))), values(*once.find(named(name)))) << name;  // ggml has no -0
  }
  // By hand: expert 1, gate's row 7, column 5, is code 5 of row 14 of its 128.
  const std::size_t row = 2 * kInner + 14;
  const auto codes = read_all(*model.find(named("gate_up_proj"))->require("data").blob);
  const auto scales = read_all(*model.find(named("gate_up_proj"))->require("scales").blob);
  constexpr double kNumbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const unsigned code = std::to_integer<unsigned>(codes[row * 16 + 2]) >> 4U;
  const double expected =
      std::ldexp(code < 8 ? kNumbers[code] : -kNumbers[code - 8], std::to_integer<int>(scales[row]) - 127);
  EXPECT_EQ(static_cast<double>(values(*once.find(named("gate_up_proj"))).at((kHidden + 5) * 2 * kInner + 14)),
            expected);
}

TEST(GptOssExperts, OtherMethodsAndPartsAreNotFollowed) {
  const Model other = parts(R"("quantization_config": {"quant_method": "fp8"}, )");
  EXPECT_THAT(list_ignored_effects(other), testing::SizeIs(1));
  EXPECT_TRUE(has_other_tensors(other));
  EXPECT_THAT(list_ignored_effects(parts()), testing::SizeIs(1));
  EXPECT_FALSE(has_other_tensors(packed()));
}

// Returns the model with one tensor replaced.
Model with(const Model& model, const Tensor& other) {
  Model changed = without_experts("");
  changed.config_json = model.config_json;
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.name.starts_with(kExperts) && tensor.name != other.name) changed.add(tensor);
  }
  changed.add(other);
  return changed;
}

TEST(GptOssExperts, StackedTensorsThatDoNotFitEachOtherAreNamed) {
  std::mt19937 random(6);
  struct Case {
    const char* name;
    Tensor tensor;
    const char* problem;
  };
  const auto other = [&](const char* name, const Shape& shape) { return floats(named(name), shape, random); };
  const Case cases[] = {
      {"fewer experts", other("down_proj", {2, kInner, kHidden}), "down_proj: 2 experts, expected 3"},
      {"an odd number of outputs", other("gate_up_proj", {kCount, kHidden, 2 * kInner - 1}),
       "gate_up_proj: 127 outputs, expected a multiple of 2: those of gate_proj and up_proj alternate"},
      {"two dimensions", other("down_proj", {kInner, kHidden}), "its shape is [64, 32], expected 3 dimensions"},
      {"biases for fewer experts", other("gate_up_proj_bias", {2, 2 * kInner}),
       "gate_up_proj_bias: its shape is [2, 128], expected [3, 128]"},
      {"biases for other rows", other("gate_up_proj_bias", {kCount, 127}),
       "gate_up_proj_bias: its shape is [3, 127], expected [3, 128]"},
      {"biases of one dimension", other("down_proj_bias", {kCount * kHidden}),
       "down_proj_bias: its shape is [96], expected [3, 32]"},
  };
  for (const Case& rule : cases) {
    SCOPED_TRACE(rule.name);
    for (const Model& whole : {numbers(), packed()}) {
      const bool is_packed = whole.config_json.find("quantization_config") != nullptr;
      if (is_packed && !rule.tensor.name.ends_with("bias")) continue;
      const Model model = with(whole, rule.tensor);
      EXPECT_THAT(error_of([&] { convert_weights(model, WeightReader::llama_cpp, false); }).message(),
                  HasSubstr(rule.problem));
      EXPECT_THAT(check_consistency(model), testing::Not(IsEmpty()));
    }
  }
}

TEST(GptOssExperts, EveryMissingTensorIsNamed) {
  const Model whole = packed();
  for (const std::string name : {"gate_up_proj", "gate_up_proj_bias", "down_proj", "down_proj_bias"}) {
    SCOPED_TRACE(name);
    Model model = without_experts("");
    for (const Tensor& tensor : whole.tensors()) {
      if (tensor.name.starts_with(kExperts) && tensor.name != named(name)) model.add(tensor);
    }
    EXPECT_THAT(check_consistency(model), testing::Not(IsEmpty()));
    EXPECT_THAT(error_of([&] { convert_weights(model, WeightReader::llama_cpp, false); }).message(),
                HasSubstr(name + " is missing"));
  }
}

TEST(GptOssExperts, ALayerWithoutItsFirstExpertIsNamed) {
  Model model = made(packed(), WeightReader::llama_cpp);
  std::mt19937 random(7);
  model.add(floats("model.layers.1.mlp.experts.5.up_proj.weight", {kInner, kHidden}, random));
  EXPECT_THAT(error_of([&] { convert_weights(model, WeightReader::transformers, false); }).message(),
              HasSubstr("tensor model.layers.1.mlp.experts.0.gate_proj.weight is missing"));
}

TEST(GptOssExperts, OtherTensorsOfExpertsStay) {
  std::mt19937 random(8);
  Model model = packed();
  model.add(floats(named("extra"), {3}, random));
  const auto separate = convert_weights(model, WeightReader::llama_cpp, false);
  ASSERT_TRUE(separate);
  ASSERT_NE(separate->model.find(named("extra")), nullptr);
  EXPECT_EQ(values(*separate->model.find(named("extra"))), values(*model.find(named("extra"))));
  EXPECT_THAT(separate->replaced, testing::Not(testing::Contains(named("extra"))));
}

}  // namespace
}  // namespace poise
