#include "formats/huggingface/peft_config.hpp"

#include <gtest/gtest.h>

namespace poise::huggingface {
namespace {

// The names are longer than the part of a text that one search tries.
TEST(ModulePatterns, MatchLongNames) {
  const std::string module = "base_model.model.model.language_model.layers.10.mlp.experts.100.down_proj";
  const ModulePattern down(R"(experts\.\d+\.down_proj)", ModulePattern::Matches::ending, "test");
  EXPECT_TRUE(down.matches(module));
  EXPECT_FALSE(down.matches(module + ".base_layer"));
  EXPECT_FALSE(ModulePattern("[a-z_]+", ModulePattern::Matches::whole, "test").matches(module));
}

}  // namespace
}  // namespace poise::huggingface
