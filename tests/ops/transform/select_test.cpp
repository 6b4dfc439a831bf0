// The step that selects tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "ops/transform/support.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Fate = TensorPlan::Fate;

TEST(SelectStep, FollowsPatternsAndTellsOfUnusedOnes) {
  ConvertOptions options;
  options.only = {"a*", "b"};
  options.skip = {"*x"};
  const StepTest test("zt", options);
  const auto step = make_select_step(test.conversion);
  const auto fate = [&](const char* name) {
    const Tensor tensor = zeros(name, {1}, DType::f32);
    TensorPlan plan(tensor);
    step->apply(plan);
    return plan.fate;
  };
  EXPECT_EQ(fate("a"), Fate::written);
  EXPECT_EQ(fate("c"), Fate::skipped);
  Model made;
  EXPECT_THAT([&] { step->finish(made); },
              ThrowsMessage<Error>(HasSubstr("only: the pattern \"b\" matches no tensor")));
  EXPECT_EQ(fate("b"), Fate::written);
  EXPECT_THAT([&] { step->finish(made); },
              ThrowsMessage<Error>(HasSubstr("skip: the pattern \"*x\" matches no tensor")));
  EXPECT_EQ(fate("ax"), Fate::skipped);
  EXPECT_NO_THROW(step->finish(made));
}

TEST(SelectStep, LeavesOutWhatTheTargetDoesNotUse) {
  StepTest test("alt");
  test.model.config.emplace();
  test.model.config->tie_word_embeddings = true;
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"})
    test.model.add(zeros(name, {1, 2}, DType::f32));
  const auto plan = applied(make_select_step, test, TensorPlan(*test.model.find("lm_head.weight")));
  EXPECT_EQ(plan.fate, Fate::left_out);
  EXPECT_THAT(warnings_of(plan), ElementsAre("lm_head.weight is left out: tie_word_embeddings makes it the embedding"));
  EXPECT_EQ(applied(make_select_step, test, TensorPlan(*test.model.find("model.embed_tokens.weight"))).fate,
            Fate::written);
}

}  // namespace
}  // namespace poise
