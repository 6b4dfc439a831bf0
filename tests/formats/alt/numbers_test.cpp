// ALT's numbers for tensors and tokens: the tables of docs/formats/alt.md.
#include <gtest/gtest.h>

#include <array>

#include "formats/alt/layout.hpp"
#include "formats/alt/sections.hpp"

namespace poise::alt {
namespace {

TEST(AltNumbers, HintsOfNames) {
  const struct {
    const char* name;
    std::array<std::int32_t, 4> hints;  // component_type, block_index, layer_type, projection_type
  } cases[] = {
      {"model.embed_tokens.weight", {1, -1, 0, 0}},
      {"lm_head.weight", {2, -2, 0, 0}},
      {"model.norm.weight", {3, -3, 0, 0}},
      {"model.layers.0.self_attn.q_proj.weight", {0, 0, 1, 1}},
      {"model.layers.1.self_attn.k_proj.weight", {0, 1, 1, 2}},
      {"model.layers.2.self_attn.v_proj.weight", {0, 2, 1, 3}},
      {"model.layers.3.self_attn.o_proj.weight", {0, 3, 1, 4}},
      {"model.layers.4.mlp.gate_proj.weight", {0, 4, 2, 5}},
      {"model.layers.5.mlp.up_proj.weight", {0, 5, 2, 6}},
      {"model.layers.6.mlp.down_proj.weight", {0, 6, 2, 7}},
      {"model.layers.7.input_layernorm.weight", {0, 7, 3, 0}},
      {"model.layers.31.post_attention_layernorm.weight", {0, 31, 4, 0}},
      {"model.layers.8.self_attn.q_proj.bias", {0, 8, -1, -1}},
      {"model.layers.08.self_attn.q_proj.weight", {-1, -9, -1, -1}},
      {"embedding.weight", {-1, -9, -1, -1}},
  };
  for (const auto& [name, expected] : cases) {
    const Hints hints = make_hints(find_alt_role(name), -9);
    EXPECT_EQ((std::array{hints.component_type, hints.block_index, hints.layer_type, hints.projection_type}), expected)
        << name;
  }
}

TEST(AltNumbers, TokenTypesInBothNumberings) {
  using enum TokenType;
  const std::array canonical = {normal, byte, control, unknown, unused, bos, eos, pad, user_defined};
  const std::array alt_c = {normal, unknown, control, user_defined, byte, unused, bos, eos, pad};
  ASSERT_EQ(kMostTypeCode, 8);
  for (std::int32_t code = 0; code <= kMostTypeCode; ++code) {
    const auto at = static_cast<std::size_t>(code);
    EXPECT_EQ(decode_token_type(TypeNumbering::canonical, code), canonical.at(at)) << code;
    EXPECT_EQ(encode_token_type(TypeNumbering::canonical, canonical.at(at)), code);
    EXPECT_EQ(decode_token_type(TypeNumbering::alt_c, code), alt_c.at(at)) << code;
    EXPECT_EQ(encode_token_type(TypeNumbering::alt_c, alt_c.at(at)), code);
  }
}

}  // namespace
}  // namespace poise::alt
