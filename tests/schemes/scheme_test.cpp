#include "schemes/scheme.hpp"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "schemes/make_tensors.hpp"
#include "tensor/group_scheme.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

TEST(Schemes, PartsHaveTheNamesOfTheirMatrixForPatterns) {
  const Attributes config = {{"quantization_config", Attributes{{"quant_method", "mxfp4"}}}};
  const auto all = UnorderedElementsAre("a.up_scales", "a.up_blocks", "a.up_scales", "a.up");
  EXPECT_THAT(list_pattern_names(config, "a.up_scales"), all);
  EXPECT_THAT(list_pattern_names(config, "a.up_blocks"),
              UnorderedElementsAre("a.up_blocks", "a.up_blocks", "a.up_scales", "a.up"));
  EXPECT_THAT(list_pattern_names(config, "a.up_bias"), ElementsAre("a.up_bias"));
  EXPECT_THAT(list_pattern_names({}, "a.up_scales"), ElementsAre("a.up_scales"));
}

TEST(Schemes, AnEmptyConfigurationIsIgnored) {
  EXPECT_FALSE(find_quantization({{"quantization_config", Attributes{}}}));
  EXPECT_TRUE(find_quantization({{"quantization_config", Attributes{{"quant_method", "gptq"}}}}));
}

// Both the lists and the names of modules come from files.
TEST(Schemes, LimitsTheTimeToMatchListsOfModules) {
  std::vector<std::string> matrices;
  Value::Array names;
  for (int i = 0; i < 50'000; ++i) {
    matrices.push_back("model.layers." + std::to_string(i) + ".q_proj");
    names.emplace_back(i < 2 ? matrices.back() : "other." + std::to_string(i));
  }
  const auto list_warnings = [&](Value::Array list) {
    const Attributes keys = {{"ignore", std::move(list)}};
    return schemes::list_algorithm_warnings(QuantizationConfig(keys), matrices, {});
  };
  const auto known = HasSubstr("lists matrix model.layers.0.q_proj and 1 more");
  EXPECT_THAT(list_warnings(names), ElementsAre(known));
  EXPECT_THAT(list_warnings({"model.layers.[01].q_*", 3}), ElementsAre(known));
  for (Value& name : names) name = "*" + *name.get_if<std::string>();
  EXPECT_THAT(list_warnings(names),
              ElementsAre("quantization_config: ignore has too many patterns to compare with 50000 matrices"));
  EXPECT_THAT(list_warnings({std::string(1'000'000, '*')}), ElementsAre(HasSubstr("too many patterns")));
}

Attributes with_lists(Value::Array ignore, Value::Array targets) {
  return {{"ignore", std::move(ignore)},
          {"config_groups", Attributes{{"group_0", Attributes{{"targets", std::move(targets)}}}}}};
}

// Reading an expression needs memory.
TEST(Schemes, ReadsAtMost4096ExpressionsOfModules) {
  const Value::Array some(4096, Value("re:.*up"));
  const Attributes known = with_lists({}, some);
  const ModuleLists lists(known);
  EXPECT_EQ(lists.targets.at("group_0").match("a.up").naming, Naming::by_expression);
  EXPECT_EQ(lists.targets.at("group_0").match("a.down").naming, Naming::none);
  EXPECT_THAT([&] { ModuleLists{with_lists({"re:x"}, some)}; },
              testing::ThrowsMessage<Error>(HasSubstr("more than 4096 regular expressions are not read")));
}

// Expressions are compiled as they are in the file.
TEST(Schemes, ExpressionsOfModulesMatchFromTheBeginning) {
  const auto naming = [](const char* expression) {
    const ModuleLists lists(with_lists({expression}, {}));
    return lists.ignored->match("model.layers.0.mlp.up_proj").naming;
  };
  for (const char* expression : {"re:model", "re:", "re:.*up_proj$", "re:x|model"})
    EXPECT_EQ(naming(expression), Naming::by_expression) << expression;
  for (const char* expression : {"re:layers", "re:up_proj", "re:^mlp", "re:x|up_proj", "re:.*up$"})
    EXPECT_EQ(naming(expression), Naming::none) << expression;
  for (const char* expression : {"re:x)|(?:model", "re:model["})
    EXPECT_THAT([&] { naming(expression); },
                testing::ThrowsMessage<Error>(HasSubstr("quantization_config: the regular expression \"" +
                                                        std::string(expression).substr(3) + "\": ")));
}

// A configuration that replaces another one has its own lists, which own their texts.
TEST(Schemes, ListsOfModulesBelongToTheirConfiguration) {
  std::optional<Attributes> keys = with_lists({"a.up"}, {"re:a"});
  std::optional<QuantizationConfig> config(*keys);
  EXPECT_EQ(config->lists().ignored->match("a.up").naming, Naming::by_name);
  const QuantizationConfig copy = *config;
  keys->set("ignore", Value::Array{"b.up"});
  config.emplace(*keys);
  EXPECT_EQ(config->lists().ignored->match("a.up").naming, Naming::none);
  EXPECT_EQ(config->lists().ignored->match("b.up").naming, Naming::by_name);
  keys.reset();
  EXPECT_EQ(copy.lists().ignored->match("a.up").naming, Naming::by_name);
  EXPECT_EQ(copy.lists().targets.at("group_0").match("a.up").target, "re:a");
}

TEST(Schemes, ThreadsShareAListOfModules) {
  const Attributes keys = with_lists({"re:.*[ab]\\.up", "c.up"}, {});
  const QuantizationConfig config(keys);
  std::atomic<int> wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (const char* module : {"a.up", "b.up", "c.up", "a.down"}) {
      threads.emplace_back([&, module] {
        const Naming expected = module[0] == 'c'   ? Naming::by_name
                                : module[2] == 'u' ? Naming::by_expression
                                                   : Naming::none;
        for (int i = 0; i < 500; ++i) wrong += config.lists().ignored->match(module).naming == expected ? 0 : 1;
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

// Returns a matrix whose zero points are float16 numbers that are computed when they are read.
Tensor groups_with_zeros(const std::vector<float>& zeros) {
  const auto bytes = [](const auto& numbers) {
    const auto all = std::as_bytes(std::span(numbers));
    return make_memory_blob({all.begin(), all.end()}, "memory");
  };
  const auto halves = [&](const std::vector<float>& numbers) {
    return make_cast_blob("numbers", bytes(numbers), DType::f32, numbers.size(), DType::f16);
  };
  Tensor tensor;
  tensor.name = "a.weight";
  tensor.shape = {2, 8};
  tensor.attributes = {{"bits", 4}, {"group_size", 8}, {"packing", "8_per_i32"}};
  tensor.parts.push_back({.role = "packed_weight", .dtype = DType::i32, .blob = bytes(std::vector<int>{1, 2})});
  tensor.parts.push_back({.role = "scales", .dtype = DType::f16, .blob = halves({1, 2})});
  tensor.parts.push_back({.role = "zeros", .dtype = DType::f16, .blob = halves(zeros)});
  tensor.layout = make_group_layout(read_group_scheme(tensor, GroupWords::zt1));
  return tensor;
}

// The fault is found before the output is written.
TEST(Schemes, ZeroPointsThatAreNotCodesAreFound) {
  for (const auto& [zeros, are_codes] :
       {std::pair(std::vector<float>{0, 15}, true), {{7, 7.5F}, false}, {{16, 0}, false}}) {
    Model model;
    model.add(groups_with_zeros(zeros));
    const auto made = unfold_groups(model, "", "");
    ASSERT_TRUE(made.has_value());
    EXPECT_EQ(made->model.find("a.weight_packed") != nullptr, are_codes) << zeros[0];
    if (are_codes) {
      EXPECT_THAT(made->losses, ElementsAre());
    } else {
      EXPECT_THAT(made->losses, ElementsAre("tensor a.weight becomes float32: zero points are not codes"));
    }
  }
}

}  // namespace
}  // namespace poise
