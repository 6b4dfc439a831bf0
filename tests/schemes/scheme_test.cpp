#include "schemes/scheme.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schemes/floats.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

TEST(Schemes, PartsHaveTheNamesOfTheirMatrixForPatterns) {
  const Attributes config = {{"quantization_config", Attributes{{"quant_method", "mxfp4"}}}};
  const auto all = UnorderedElementsAre("a.up_scales", "a.up_blocks", "a.up_scales", "a.up");
  EXPECT_THAT(pattern_names(config, "a.up_scales"), all);
  EXPECT_THAT(pattern_names(config, "a.up_blocks"),
              UnorderedElementsAre("a.up_blocks", "a.up_blocks", "a.up_scales", "a.up"));
  EXPECT_THAT(pattern_names(config, "a.up_bias"), ElementsAre("a.up_bias"));
  EXPECT_THAT(pattern_names({}, "a.up_scales"), ElementsAre("a.up_scales"));
}

TEST(Schemes, AnEmptyConfigurationIsNone) {
  EXPECT_FALSE(find_quantization({{"quantization_config", Attributes{}}}));
  EXPECT_TRUE(find_quantization({{"quantization_config", Attributes{{"quant_method", "gptq"}}}}));
}

// Lists of modules and modules come from files.
TEST(Schemes, ComparesListsOfModulesOnlyWhereThatEnds) {
  std::vector<std::string> matrices;
  Value::Array names;
  for (int i = 0; i < 50'000; ++i) {
    matrices.push_back("model.layers." + std::to_string(i) + ".q_proj");
    names.emplace_back(i < 2 ? matrices.back() : "other." + std::to_string(i));
  }
  const auto doubts = [&](Value::Array list) {
    const Attributes keys = {{"ignore", std::move(list)}};
    return schemes::doubts_of_algorithm(QuantizationConfig(keys), matrices, {});
  };
  const auto known = HasSubstr("lists matrix model.layers.0.q_proj and 1 more");
  EXPECT_THAT(doubts(names), ElementsAre(known));
  EXPECT_THAT(doubts({"model.layers.[01].q_*", 3}), ElementsAre(known));
  for (Value& name : names) name = "*" + *name.get_if<std::string>();
  EXPECT_THAT(doubts(names), ElementsAre("ignore has too many patterns to compare with 50000 matrices"));
  EXPECT_THAT(doubts({std::string(1'000'000, '*')}), ElementsAre(HasSubstr("too many patterns")));
}

}  // namespace
}  // namespace poise
