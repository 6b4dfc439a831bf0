// The choice of types with a measure of divergence that the test computes.
#include <algorithm>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/convert.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/values.hpp>

#include "support/directories.hpp"

namespace poise {
namespace {

Model make_model(const std::vector<std::string>& names) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  Model model;
  for (const std::string& name : names) {
    std::vector<float> numbers(64 * 256);
    for (float& number : numbers) number = normal(random);
    model.add(make_tensor(name, {64, 256}, numbers));
  }
  return model;
}

double compute_error(const std::vector<float>& numbers, const std::vector<float>& decoded) {
  double error = 0;
  double squares = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto x = static_cast<double>(numbers[i]);
    const double difference = x - static_cast<double>(decoded[i]);
    error += difference * difference;
    squares += x * x;
  }
  return error / squares;
}

// Returns a measure: the sum over the changed tensors of their relative squared errors, with these weights.
MakeDivergenceMeasure make_measure(const std::map<std::string, double>& weights) {
  return [weights](const Model& model) {
    std::map<std::string, std::vector<float>> numbers;
    for (const Tensor& tensor : model.tensors()) numbers[tensor.name] = values(tensor);
    const auto measure = [weights, numbers](const std::vector<Tensor>& changed) {
      double sum = 0;
      for (const Tensor& tensor : changed)
        sum += weights.at(tensor.name) * compute_error(numbers.at(tensor.name), values(tensor));
      return sum;
    };
    return DivergenceMeasure{.measure = measure, .tokens = 7};
  };
}

ConvertOptions make_options(const std::map<std::string, double>& weights, double bits) {
  ConvertOptions options;
  options.budget = SizeBudget{.bits_per_weight = bits, .divergence = make_measure(weights)};
  return options;
}

// Returns the types of the planned tensors, by name.
std::map<std::string, std::string> list_types(const Plan& plan) {
  std::map<std::string, std::string> types;
  for (const PlannedTensor& tensor : plan.tensors) types[tensor.name] = tensor.to;
  return types;
}

TEST(ChooseTypes, SpendsBytesWhereTheDivergenceIs) {
  const Model model = make_model({"a.weight", "b.weight"});
  const auto choose = [&](double a, double b) {
    return list_types(plan(model, "zt", make_options({{"a.weight", a}, {"b.weight", b}}, 4.6)));
  };
  EXPECT_EQ(choose(1e4, 1e-3), (std::map<std::string, std::string>{{"a.weight", "q6_k"}, {"b.weight", "q2_k"}}));
  EXPECT_EQ(choose(1e-3, 1e4), (std::map<std::string, std::string>{{"a.weight", "q2_k"}, {"b.weight", "q6_k"}}));
}

// The error of the report is the divergence of the whole choice, because that measure adds up errors.
TEST(ChooseTypes, PredictsTheDivergence) {
  const Model model = make_model({"a.weight", "layers.0.b.weight", "layers.1.b.weight"});
  const std::map<std::string, double> weights = {
      {"a.weight", 0.5}, {"layers.0.b.weight", 0.125}, {"layers.1.b.weight", 0.0625}};
  const support::TemporaryDirectory directory;
  save(model, directory / "in.zt", "zt");
  const ConvertReport report = convert(directory / "in.zt", directory / "out.zt", make_options(weights, 4.5));
  ASSERT_TRUE(report.budget);
  EXPECT_EQ(report.budget->tokens, 7U);
  const Model out = open(directory / "out.zt");
  std::vector<Tensor> changed(out.tensors().begin(), out.tensors().end());
  const double expected = make_measure(weights)(model).measure(changed);
  double sum = 0;
  for (const BudgetChoice::Row& row : report.budget->rows) sum += row.error;
  EXPECT_NEAR(sum, expected, 1e-5 * expected);
  const auto chosen = std::ranges::find(report.budget->curve, true, &BudgetChoice::Point::is_chosen);
  EXPECT_NEAR(chosen->error, expected, 1e-5 * expected);
}

TEST(ChooseTypes, StoresTheExpertsOfALayerInOneType) {
  const std::string list = "model.layers.0.mlp.experts.";
  const Model model = make_model({"a.weight", list + "0.up.weight", list + "1.up.weight"});
  const auto types = list_types(
      plan(model, "zt", make_options({{"a.weight", 1}, {list + "0.up.weight", 1e-4}, {list + "1.up.weight", 1}}, 4.2)));
  EXPECT_EQ(types.at(list + "0.up.weight"), types.at(list + "1.up.weight"));
}

TEST(ChooseTypes, RefusesModelsBeforeItReadsSamples) {
  const Model model = make_model({"a.weight"});
  ConvertOptions options = make_options({}, 4.5);
  options.budget->divergence = [](const Model&) -> DivergenceMeasure {
    throw Error(ErrorKind::unsupported, "does not run");
  };
  options.write.progress = [](const ProgressEvent&) {
    ADD_FAILURE() << "a sample was read";
    return true;
  };
  EXPECT_THROW(plan(model, "zt", options), Error);
}

TEST(ChooseTypes, StopsPassesByProgress) {
  const Model model = make_model({"a.weight", "b.weight"});
  ConvertOptions options = make_options({{"a.weight", 1}, {"b.weight", 1}}, 4.5);
  std::vector<std::string> items;
  options.write.progress = [&](const ProgressEvent& event) {
    items.emplace_back(event.item);
    return items.size() < 3;
  };
  try {
    plan(model, "zt", options);
    ADD_FAILURE() << "not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  }
  EXPECT_THAT(items, testing::ElementsAre("a.weight", "b.weight", "a.weight"));  // two samples, a pass
}

}  // namespace
}  // namespace poise
