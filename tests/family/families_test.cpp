#include "family/families.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/check.hpp"
#include "family/config_effects.hpp"
#include "family/decoder_plan.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Config config_of(std::int64_t layers) {
  Config config;
  config.hidden_size = 12;
  config.intermediate_size = 7;
  config.max_position_embeddings = 9;
  config.num_attention_heads = 4;
  config.num_hidden_layers = layers;
  config.num_key_value_heads = 2;
  config.head_dim = 5;
  config.vocab_size = 11;
  return config;
}

// Returns "name [shape]" of each tensor, in the order of the table.
std::vector<std::string> list_names(const std::vector<ExpectedTensor>& tensors) {
  std::vector<std::string> lines;
  for (const ExpectedTensor& tensor : tensors)
    lines.push_back(fmt::format("{} {}", tensor.name, to_string(tensor.shape)));
  return lines;
}

Model model_of(const std::string& model_type, const std::vector<std::string>& tensors) {
  Model model;
  model.card.model_type = model_type;
  for (const std::string& name : tensors) {
    model.add(make_dense(name, {1}, DType::u8, make_memory_blob(std::vector<std::byte>(1), name)));
  }
  return model;
}

TEST(Families, AreFoundByTheirModelTypes) {
  std::set<std::string_view> types;
  for (const Family* family : list_families()) {
    const std::string_view type = family->model_type;
    EXPECT_TRUE(types.insert(type).second) << type << " belongs to two families";
    EXPECT_EQ(find_family(type), family) << type;
    EXPECT_EQ(&find_family_or_llama(type), family) << type;
  }
  const std::string known = format_family_names();
  EXPECT_TRUE(known.starts_with("mistral, mistral3, llama, ")) << known;
  EXPECT_TRUE(known.ends_with(" and tiny_llama")) << known;
  for (const std::string_view type : types) EXPECT_THAT(known, testing::HasSubstr(std::string(type)));
}

TEST(Families, MissingAndUnknownModelTypesAreTakenForLlama) {
  for (const char* type : {"", "falcon", "Mistral"}) {
    EXPECT_EQ(find_family(type), nullptr) << type;
    EXPECT_EQ(&find_family_or_llama(type), find_family("llama")) << type;
  }
}

TEST(Families, TheTableHasTheEmbeddingAndTheOutput) {
  for (const Family* family : list_families()) {
    EXPECT_TRUE(family->tensors.has(family->embedding)) << family->title;
    EXPECT_TRUE(family->tensors.has(family->output)) << family->title;
  }
}

// Shapes: "y = W x" of q_proj and so on in Hugging Face's modeling_mistral.py.
TEST(Families, TensorsOfALlamaInCanonicalOrder) {
  const std::vector<std::string> layer = {
      "input_layernorm.weight [12]",      "self_attn.q_proj.weight [20, 12]", "self_attn.k_proj.weight [10, 12]",
      "self_attn.v_proj.weight [10, 12]", "self_attn.o_proj.weight [12, 20]", "post_attention_layernorm.weight [12]",
      "mlp.gate_proj.weight [7, 12]",     "mlp.up_proj.weight [7, 12]",       "mlp.down_proj.weight [12, 7]"};
  std::vector<std::string> expected = {"model.embed_tokens.weight [11, 12]"};
  for (int number = 0; number < 2; ++number) {
    for (const std::string& line : layer) expected.push_back(fmt::format("model.layers.{}.{}", number, line));
  }
  expected.insert(expected.end(), {"model.norm.weight [12]", "lm_head.weight [11, 12]"});
  Config config = config_of(2);
  for (const char* type : {"mistral", "llama"})
    EXPECT_EQ(list_names(find_family(type)->tensors.list_all(config)), expected);
  config.tie_word_embeddings = true;
  expected.pop_back();
  EXPECT_EQ(list_names(find_family("llama")->tensors.list_all(config)), expected);
}

// docs/formats/tiny-llama.md
TEST(Families, TensorsOfATinyLlamaInTheOrderOfItsFile) {
  EXPECT_THAT(list_names(find_family("tiny_llama")->tensors.list_all(config_of(1))),
              ElementsAre("embedding.weight [11, 12]", "position_embedding.weight [9, 12]",
                          "layers.0.attention.query.weight [12, 12]", "layers.0.attention.key.weight [12, 12]",
                          "layers.0.attention.value.weight [12, 12]", "layers.0.attention.output.weight [12, 12]",
                          "layers.0.ffn.linear1.weight [12, 7]", "layers.0.ffn.linear1.bias [7]",
                          "layers.0.ffn.linear2.weight [7, 12]", "layers.0.ffn.linear2.bias [12]",
                          "layers.0.norm1.weight [12]", "layers.0.norm1.bias [12]", "layers.0.norm2.weight [12]",
                          "layers.0.norm2.bias [12]", "output_projection.weight [12, 11]"));
}

TEST(Families, TablesHaveTheirNamesInAnyLayer) {
  const TensorTable& table = find_family("llama")->tensors;
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight", "model.layers.0.mlp.up_proj.weight",
                           "model.layers.999.input_layernorm.weight"}) {
    EXPECT_TRUE(table.has(name)) << name;
  }
  for (const char* name :
       {"", "embedding.weight", "model.layers.0.mlp.up_proj.scale", "model.layers.00.mlp.up_proj.weight",
        "model.layers.mlp.up_proj.weight", "mlp.up_proj.weight", "model.layers.0.model.norm.weight",
        "model.layers.2147483648.mlp.up_proj.weight"}) {
    EXPECT_FALSE(table.has(name)) << name;
  }
  EXPECT_EQ(table.split_layer_name("model.layers.17.a.b")->number, 17);
  EXPECT_EQ(table.split_layer_name("model.layers.17.a.b")->rest, "a.b");
  EXPECT_FALSE(table.split_layer_name("model.layers.17"));
  EXPECT_FALSE(table.split_layer_name("model.layers.-1.a"));
  EXPECT_FALSE(table.split_layer_name("layers.1.a"));
}

TEST(Families, UnknownWeightsAreNamed) {
  const std::vector<std::string> names = {"model.norm.weight",
                                          "model.layers.0.self_attn.q_proj.bias",
                                          "model.layers.0.self_attn.rotary_emb.inv_freq",
                                          "lm_head.bias",
                                          "something.else",
                                          "output_projection.weight"};
  EXPECT_THAT(find_unknown_weights(model_of("mistral", names)),
              ElementsAre("model.layers.0.self_attn.q_proj.bias", "lm_head.bias"));
  EXPECT_THAT(find_unknown_weights(model_of("", names)),
              ElementsAre("model.layers.0.self_attn.q_proj.bias", "lm_head.bias"));
  EXPECT_THAT(find_unknown_weights(model_of("tiny_llama", names)), IsEmpty());
  // A file of llama.cpp's may have weights that the family lacks; these keep llama.cpp's names.
  const std::vector<std::string> own = {"model.norm.weight", "output.bias", "blk.0.attn_qkv.bias", "rope_freqs.weight"};
  EXPECT_THAT(find_unknown_weights(model_of("qwen2", own)),
              ElementsAre("output.bias", "blk.0.attn_qkv.bias", "rope_freqs.weight"));
}

TEST(Families, EachHasItsOwnFaultsAndLimits) {
  Config config = config_of(1);
  EXPECT_THAT(check_config(config, *find_family("llama")), IsEmpty());
  EXPECT_THAT(
      [&] { find_family("llama")->plan(config); },
      testing::ThrowsMessage<Error>(testing::HasSubstr("head_dim is 5: rotary embeddings need an even number")));
  config.head_dim = 6;
  EXPECT_EQ(find_family("mistral")->plan(config).ropes.size(), 1U);
  EXPECT_THAT(check_config(config, *find_family("tiny_llama")),
              testing::Contains("num_key_value_heads is 2, a Tiny Llama has one for each of its 4 heads"));
  config.hidden_size = 0;
  EXPECT_THAT(check_config(config, *find_family("tiny_llama")), ElementsAre(testing::HasSubstr("hidden_size is 0")))
      << "the family is asked after all others";
}

TEST(Families, KeysThatAFamilyChecksItselfAreFollowed) {
  for (const auto& [type, told] : {std::pair("mistral", 1U), std::pair("tiny_llama", 0U)}) {
    Model model = model_of(type, {});
    model.config = config_of(1);
    model.config->hidden_act = "gelu_tanh";
    EXPECT_EQ(list_ignored_effects(model).size(), told) << type;
  }
}

}  // namespace
}  // namespace poise
