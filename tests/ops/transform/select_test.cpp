// The step that selects tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "ops/transform/support.hpp"

namespace poise {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(SelectStep, FollowsPatternsAndReportsUnusedOnes) {
  ConvertOptions options;
  options.only = {"a*", "b"};
  options.skip = {"*x"};
  const StepTest test("zt", options);
  const auto step = make_select_step(test.conversion);
  const auto is_skipped = [&](const char* name) {
    const Tensor tensor = zeros(name, {1}, DType::f32);
    TensorPlan plan(tensor);
    step->apply(plan);
    return plan.is_skipped;
  };
  EXPECT_FALSE(is_skipped("a"));
  EXPECT_TRUE(is_skipped("c"));
  Model made;
  made.add(zeros("a", {1}, DType::f32));
  EXPECT_THAT([&] { step->finish(made); },
              ThrowsMessage<Error>(HasSubstr("only: the pattern \"b\" matches no tensor")));
  EXPECT_FALSE(is_skipped("b"));
  EXPECT_THAT([&] { step->finish(made); },
              ThrowsMessage<Error>(HasSubstr("skip: the pattern \"*x\" matches no tensor")));
  EXPECT_TRUE(is_skipped("ax"));
  EXPECT_NO_THROW(step->finish(made));
}

TEST(SelectStep, AnOutputWithoutAnyTensorIsAnError) {
  ConvertOptions options;
  options.skip = {"*"};
  const StepTest test("zt", options);
  const auto step = make_select_step(test.conversion);
  const Tensor tensor = zeros("a", {1}, DType::f32);
  TensorPlan plan(tensor);
  step->apply(plan);
  Model made;
  EXPECT_THAT(
      [&] { step->finish(made); },
      ThrowsMessage<Error>(HasSubstr("skip: the patterns leave out every tensor, so there is nothing to write")));
  made.add(zeros("b", {1}, DType::f32));
  EXPECT_NO_THROW(step->finish(made));
}

TEST(SelectStep, MatchesTheNamesInTheFile) {
  ConvertOptions options;
  options.only = {"blk.*"};
  options.skip = {"model.layers.1.*"};
  const StepTest test("zt", options);
  const auto is_skipped = [&](const char* name, const char* file_name) {
    Tensor tensor = zeros(name, {1}, DType::f32);
    if (*file_name != '\0') tensor.file_name = std::make_shared<const std::string>(file_name);
    return applied(make_select_step, test, TensorPlan(tensor)).is_skipped;
  };
  EXPECT_FALSE(is_skipped("model.layers.0.q", "blk.0.attn_q"));
  EXPECT_TRUE(is_skipped("model.layers.1.q", "blk.1.attn_q"));
  EXPECT_TRUE(is_skipped("model.norm", "output_norm"));
  EXPECT_TRUE(is_skipped("model.layers.0.q", ""));
}

}  // namespace
}  // namespace poise
