#include "schemes/scheme.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace poise {
namespace {

using testing::ElementsAre;
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

}  // namespace
}  // namespace poise
