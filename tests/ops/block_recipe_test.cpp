// The types are those that llama-quantize of llama.cpp v0.5.0 gave a model of 16 layers with 8 heads for 2 keys.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "ops/block_recipe.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

Model model_of(std::int64_t layers, bool tied = false) {
  Model model;
  model.card.model_type = "llama";
  model.config.emplace();
  model.config->num_hidden_layers = layers;
  model.config->num_attention_heads = 8;
  model.config->num_key_value_heads = 2;
  const auto add = [&](std::string name) {
    model.add(make_dense(std::move(name), {2, 512}, DType::bf16, make_memory_blob(std::vector<std::byte>(2048), "w")));
  };
  add("model.embed_tokens.weight");
  if (!tied) add("lm_head.weight");
  for (std::int64_t i = 0; i < layers; ++i) {
    for (const char* name :
         {"self_attn.q_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.up_proj", "mlp.down_proj"}) {
      add(fmt::format("model.layers.{}.{}.weight", i, name));
    }
  }
  return model;
}

std::string types(std::string_view recipe, const Model& model, std::string_view matrix, bool importance = false) {
  const BlockRecipe chooser(recipe, model);
  std::string result;
  for (std::int64_t i = 0; i < model.config->num_hidden_layers; ++i) {
    const Tensor& tensor = *model.find(fmt::format("model.layers.{}.{}.weight", i, matrix));
    result +=
        fmt::format("{}{}", i == 0 ? "" : " ", chooser.choose_type(tensor.name, tensor.shape.back(), importance).name);
  }
  return result;
}

std::string type(std::string_view recipe, const Model& model, std::string_view name) {
  return std::string(BlockRecipe(recipe, model).choose_type(name, model.find(name)->shape.back(), false).name);
}

std::string repeated(std::string_view type, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += fmt::format("{}{}", i == 0 ? "" : " ", type);
  return result;
}

TEST(BlockRecipe, MixesAsLlamaQuantizeDoes) {
  const Model model = model_of(16);
  const std::string mixed = "q6_k q6_k q4_k q4_k q6_k q4_k q4_k q6_k q4_k q4_k q6_k q4_k q4_k q6_k q6_k q6_k";
  EXPECT_EQ(types("q4_k_m", model, "self_attn.v_proj"), mixed);
  EXPECT_EQ(types("q4_k_m", model, "mlp.down_proj"), mixed);
  EXPECT_EQ(types("q4_k_m", model, "self_attn.q_proj"), repeated("q4_k", 16));
  EXPECT_EQ(types("q4_k_s", model, "self_attn.v_proj"), repeated("q5_k", 4) + " " + repeated("q4_k", 12));
  EXPECT_EQ(types("q4_k_s", model, "mlp.down_proj"), repeated("q5_k", 2) + " " + repeated("q4_k", 14));
  EXPECT_EQ(types("q3_k_m", model, "mlp.down_proj"), "q5_k " + repeated("q4_k", 15));
  EXPECT_EQ(types("q3_k_m", model, "self_attn.v_proj"), repeated("q5_k", 2) + " " + repeated("q4_k", 14));
  EXPECT_EQ(types("q2_k:mix", model, "self_attn.v_proj"), repeated("q4_k", 16));  // four queries share a key
  EXPECT_EQ(types("q2_k:mix", model, "self_attn.o_proj"), repeated("q3_k", 16));
  EXPECT_EQ(types("q4_0:mix", model, "mlp.down_proj"), repeated("q4_0", 16));
  EXPECT_EQ(types("q4_0:mix", model, "mlp.down_proj", true), "q4_1 q4_1 " + repeated("q4_0", 14));
}

TEST(BlockRecipe, TheOutputGetsMoreBits) {
  EXPECT_EQ(type("q4_k_m", model_of(2), "lm_head.weight"), "q6_k");
  EXPECT_EQ(type("q4_k_m", model_of(2), "model.embed_tokens.weight"), "q4_k");
  EXPECT_EQ(type("q4_k_m", model_of(2, true), "model.embed_tokens.weight"), "q6_k");  // it is the output, too
  EXPECT_EQ(type("q8_0:mix", model_of(2), "lm_head.weight"), "q8_0");
}

// The types are those that llama-quantize gave a GPT-2 of 9 layers, whose embedding is the output.
TEST(BlockRecipe, MixesGpt2AsLlamaQuantizeDoes) {
  Model model;
  model.card.model_type = "gpt2";
  model.config.emplace();
  model.config->num_hidden_layers = 9;
  model.config->num_attention_heads = model.config->num_key_value_heads = 4;
  const auto add = [&](const std::string& name) {
    model.add(make_dense(name, {2, 512}, DType::bf16, make_memory_blob(std::vector<std::byte>(2048), "w")));
    return name;
  };
  const auto types = [&](std::string_view recipe, std::string_view matrix) {
    const BlockRecipe chooser(recipe, model);
    std::string result;
    for (int i = 0; i < 9; ++i)
      result +=
          fmt::format("{}{}", i == 0 ? "" : " ",
                      chooser.choose_type(add(fmt::format("transformer.h.{}.{}.weight", i, matrix)), 512, false).name);
    return result;
  };
  const std::string mixed = "q6_k q4_k q4_k q6_k q4_k q4_k q6_k q6_k q6_k";
  EXPECT_EQ(types("q4_k_m", "attn.c_attn"), mixed);
  EXPECT_EQ(types("q4_k_s", "mlp.c_proj"), "q5_k " + repeated("q4_k", 8));
  EXPECT_EQ(types("q4_k_m", "mlp.c_fc"), repeated("q4_k", 9));
  EXPECT_EQ(types("q3_k_m", "attn.c_proj"), repeated("q4_k", 9));
  EXPECT_EQ(BlockRecipe("q3_k_m", model).choose_type(add("transformer.wte.weight"), 512, false).name, "q6_k");
}

// The types are those that llama-quantize gave a Mixtral of 8 layers with 8 experts, and 8 heads for 2 keys.
TEST(BlockRecipe, EightExpertsGetMoreBits) {
  Model model = model_of(8);
  model.config_json = {{"num_local_experts", 8}};
  for (std::int64_t i = 0; i < 8; ++i) {
    for (const char* name : {"self_attn.k_proj", "block_sparse_moe.experts.3.w1", "block_sparse_moe.experts.3.w2"}) {
      model.add(make_dense(fmt::format("model.layers.{}.{}.weight", i, name), {2, 512}, DType::bf16,
                           make_memory_blob(std::vector<std::byte>(2048), "w")));
    }
  }
  EXPECT_EQ(types("q4_k_m", model, "self_attn.v_proj"), repeated("q8_0", 8));
  EXPECT_EQ(types("q4_k_m", model, "self_attn.k_proj"), repeated("q8_0", 8));
  EXPECT_EQ(types("q4_k_m", model, "self_attn.o_proj"), repeated("q5_k", 8));
  EXPECT_EQ(types("q5_k_m", model, "self_attn.o_proj"), repeated("q5_k", 8));
  EXPECT_EQ(types("q3_k_l", model, "self_attn.o_proj"), repeated("q3_k", 8));
  EXPECT_EQ(types("q4_k_m", model, "block_sparse_moe.experts.3.w1"), repeated("q4_k", 8));
  EXPECT_EQ(types("q4_k_m", model, "block_sparse_moe.experts.3.w2"), "q6_k q4_k q4_k q6_k q4_k q4_k q6_k q6_k");
}

// For an architecture without a family, the file's own numbers count: in q2_k:mix, llama-quantize gave attn_v four bits
// with 4 heads for a key, and more bits with eight experts.
TEST(BlockRecipe, UsesTheFilesNumbersForOtherArchitectures) {
  Model model;
  model.card.model_type = "frobnicator";
  model.add(
      make_dense("blk.0.attn_v.weight", {2, 512}, DType::bf16, make_memory_blob(std::vector<std::byte>(2048), "w")));
  EXPECT_EQ(type("q2_k:mix", model, "blk.0.attn_v.weight"), "q3_k");
  model.attributes = {{"frobnicator.attention.head_count", 8}, {"frobnicator.attention.head_count_kv", 2}};
  EXPECT_EQ(type("q2_k:mix", model, "blk.0.attn_v.weight"), "q4_k");
  model.attributes.set("frobnicator.expert_count", 8);
  EXPECT_EQ(type("q4_k_m", model, "blk.0.attn_v.weight"), "q8_0");
}

TEST(BlockRecipe, RoutersAndPositionsAreNotQuantized) {
  EXPECT_TRUE(is_never_quantized("model.layers.0.mlp.gate.weight"));
  EXPECT_TRUE(is_never_quantized("blk.0.ffn_gate_inp.weight"));
  EXPECT_TRUE(is_never_quantized("transformer.wpe.weight"));
  EXPECT_TRUE(is_never_quantized("position_embedding.weight"));  // a Tiny Llama's
  EXPECT_FALSE(is_never_quantized("model.layers.0.mlp.gate_proj.weight"));
}

// tensor_allows_quantization() of llama.cpp v0.5.0; with its loops a Mamba of such blocks ends the program.
TEST(BlockRecipe, TensorsThatLlamaCppNeedsAsNumbersAreNotQuantized) {
  for (const char* name : {"blk.0.ssm_conv1d.weight", "blk.0.ssm_a", "blk.0.ssm_dt.bias", "blk.3.attn_norm.weight",
                           "token_types.weight", "blk.1.time_mix_w1.weight", "blk.0.shortconv.conv.weight",
                           "enc.blk.0.attn_rel_b.weight", "v.patch_embd.weight"}) {
    EXPECT_TRUE(is_never_quantized(name)) << name;
  }
  for (const char* name : {"blk.0.ssm_in.weight", "blk.0.time_mix_key.weight", "blk.0.attn_q.weight",
                           "model.layers.0.mlp.experts.gate_up_proj"}) {
    EXPECT_FALSE(is_never_quantized(name)) << name;
  }
}

TEST(BlockRecipe, AnUnknownNameListsTheRecipes) {
  const Error error = support::error_of([] { BlockRecipe("q4_k_xl", Model()); });
  EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
  EXPECT_NE(error.message().find("q4_k_m"), std::string::npos);
}

}  // namespace
}  // namespace poise
