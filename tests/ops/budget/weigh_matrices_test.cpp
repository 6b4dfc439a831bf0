// The weights of matrices, worked out by hand.
#include "ops/budget/budget.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace poise {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

StoredType type(const std::string& name) { return *stored_type_from_name(name); }

BudgetMatrix make_matrix(const std::string& name, std::vector<TypeCandidate> candidates) {
  return {{name}, "f32", std::move(candidates)};
}

std::vector<double> list_weights(const std::vector<BudgetMatrix>& matrices) {
  std::vector<double> weights;
  for (const BudgetMatrix& matrix : matrices) weights.push_back(matrix.weight);
  return weights;
}

TEST(WeighMatrices, JoinsTheExpertsOfALayer) {
  const std::vector<TypeCandidate> one = {{type("q4_k"), 10, 0.25}, {type("q6_k"), 20, 0.125}, {std::nullopt, 40, 0}};
  const std::vector<TypeCandidate> other = {{type("q6_k"), 20, 0.375}, {std::nullopt, 30, 0}};
  auto joined = join_experts(
      {make_matrix("layers.0.q.weight", one), make_matrix("layers.0.mlp.experts.0.up.weight", one),
       make_matrix("layers.1.mlp.experts.0.up.weight", one), make_matrix("layers.0.mlp.experts.12.up.weight", other)});
  ASSERT_EQ(joined.size(), 3U);
  EXPECT_THAT(joined[1].names, ElementsAre("layers.0.mlp.experts.0.up.weight", "layers.0.mlp.experts.12.up.weight"));
  ASSERT_EQ(joined[1].candidates.size(), 2U);  // one expert cannot become q4_k
  EXPECT_EQ(joined[1].candidates[0].type, type("q6_k"));
  EXPECT_EQ(joined[1].candidates[0].bytes, 40U);
  EXPECT_EQ(joined[1].candidates[0].error, 0.25);
  EXPECT_EQ(joined[1].candidates[1].type, std::nullopt);
  EXPECT_EQ(joined[1].candidates[1].bytes, 70U);
  // Of three matrices of experts, each weighs 1 / 6.
  set_weights(joined);
  EXPECT_EQ(joined[1].role, "layers.*.mlp.experts.*.up.weight");
  EXPECT_THAT(list_weights(joined), ElementsAre(0.5, DoubleEq(2 / 6.0), DoubleEq(1 / 6.0)));
}

TEST(WeighMatrices, WeighsEmbeddingAndOutputAsAllLayers) {
  std::vector<BudgetMatrix> matrices = {make_matrix("embed.weight", {}), make_matrix("layers.0.q.weight", {}),
                                        make_matrix("layers.1.q.weight", {})};
  set_weights(matrices);
  EXPECT_THAT(list_weights(matrices), ElementsAre(1, 0.25, 0.25));
}

TEST(WeighMatrices, ProbesTheErrorNextToTwoPercent) {
  const auto find = [](std::vector<double> errors) {
    BudgetMatrix matrix = make_matrix("a", {});
    for (const double error : errors) matrix.candidates.push_back({type("q4_k"), 1, error});
    matrix.candidates.push_back({std::nullopt, 2, 0.02});
    return choose_probe(matrix);
  };
  EXPECT_EQ(find({0.09, 0.021, 0.005}), 1U);
  EXPECT_EQ(find({0.06, 0.005}), 0U);  // by ratio
  EXPECT_EQ(find({1e-9}), 0U);
  EXPECT_EQ(find({0, 0}), std::nullopt);
}

TEST(WeighMatrices, WeighsByTheDivergenceForAUnitOfError) {
  std::vector<BudgetMatrix> matrices = {
      make_matrix("a", {{type("q2_k"), 1, 0.5}, {type("q4_k"), 2, 0.02}}), make_matrix("b", {{type("q4_k"), 2, 0.01}}),
      make_matrix("experts.0", {{type("q4_k"), 2, 0.01}}), make_matrix("zeros", {{type("q4_k"), 2, 0}})};
  set_weights(matrices, std::vector<double>{0.001, 0.004, 0, 0});
  EXPECT_THAT(list_weights(matrices), ElementsAre(DoubleEq(0.05), DoubleEq(0.4), DoubleEq(0.05), DoubleEq(0.05)));
  set_weights(matrices, std::vector<double>{0, 0, 0, 0});
  EXPECT_THAT(list_weights(matrices), ElementsAre(1e-9, 1e-9, 1e-9, 1e-9));
}

}  // namespace
}  // namespace poise
