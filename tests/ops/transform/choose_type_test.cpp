// The step that chooses types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/block_type.hpp"
#include "ops/transform/support.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string chosen(std::string_view format, const ConvertOptions& options, const Tensor& tensor) {
  const StepTest test(format, options);
  const TensorPlan plan = applied(make_choose_type_step, test, TensorPlan(tensor));
  EXPECT_THAT(warnings_of(plan), IsEmpty());
  EXPECT_EQ(plan.tensor.parts.front().dtype, tensor.parts.front().dtype);  // it chooses, and changes nothing
  return plan.type ? to_string(*plan.type) : "kept";
}

TEST(ChooseTypeStep, FollowsOptionsAndTarget) {
  const Tensor matrix = zeros("a", {2, 64}, DType::bf16);
  const Tensor vector = zeros("b", {64}, DType::bf16);
  EXPECT_EQ(chosen("zt", {}, matrix), "kept");
  EXPECT_EQ(chosen("alt", {}, matrix), "f32");  // without bf16; f16 has a smaller range
  ConvertOptions options;
  options.dtype = DType::bf16;
  EXPECT_EQ(chosen("zt", options, matrix), "kept");
  EXPECT_EQ(chosen("zt", options, zeros("c", {1}, DType::i64)), "kept");
  options = {};
  options.quantize = stored_type_from_name("q4_k");
  EXPECT_EQ(chosen("gguf", options, vector), "f32");
  EXPECT_EQ(chosen("gguf", options, zeros("d", {2, 256}, DType::bf16)), "q4_k");
  // Rows of 64 do not fit blocks of 256, and rows of 63 fit none: the types that llama-quantize uses then.
  EXPECT_EQ(chosen("gguf", options, matrix), "q5_0");
  EXPECT_EQ(chosen("gguf", options, zeros("e", {2, 63}, DType::bf16)), "f16");
}

TEST(ChooseTypeStep, WarnsWhereKeepHasNoEffect) {
  ConvertOptions options;
  options.keep = {{"*", *stored_type_from_name("qint8")}};
  const StepTest test("zt", options);
  const auto warning_of = [&](const Tensor& tensor) {
    return warnings_of(applied(make_choose_type_step, test, TensorPlan(tensor)));
  };
  EXPECT_THAT(warning_of(zeros("v", {2}, DType::f32)), ElementsAre("v: vectors are not quantized, so it is f32"));
  EXPECT_THAT(warning_of(zeros("i", {2}, DType::i8)),
              ElementsAre("i: its elements are not floating-point numbers, so keep does not change them"));
  EXPECT_THAT(warning_of(zeros("m", {2, 2}, DType::f32)), IsEmpty());
}

// Directories hold codes of some matrices alone: the others must not lose precision for numbers that are stored whole.
TEST(ChooseTypeStep, DoesNotQuantizeWhatTheTargetHoldsAsNumbers) {
  const Tensor embedding = zeros("model.embed_tokens.weight", {8, 64}, DType::bf16);
  ConvertOptions options;
  options.quantize = stored_type_from_name("group4");
  EXPECT_EQ(chosen("huggingface", options, embedding), "kept");
  EXPECT_EQ(chosen("zt", options, embedding), "group4:128");
  EXPECT_EQ(chosen("huggingface", options, zeros("a.weight", {8, 64}, DType::bf16)), "group4:128");
  const auto warnings = [](const ConvertOptions& changes, const Tensor& tensor) {
    const StepTest test("huggingface", changes);
    const TensorPlan plan = applied(make_choose_type_step, test, TensorPlan(tensor));
    EXPECT_FALSE(plan.type.has_value()) << tensor.name;
    return warnings_of(plan);
  };
  const auto no_parts = [](const std::string& name) {
    return name +
           ": compressed-tensors has codes only for matrices X.weight with rows of whole 32-bit words, so it is "
           "not quantized";
  };
  EXPECT_THAT(warnings(options, zeros("a.weight", {2, 4, 64}, DType::bf16)), ElementsAre(no_parts("a.weight")));
  EXPECT_THAT(warnings(options, zeros("a.weight", {8, 60}, DType::bf16)), ElementsAre(no_parts("a.weight")));
  EXPECT_THAT(warnings(options, zeros("a", {8, 64}, DType::bf16)), ElementsAre(no_parts("a")));
  ConvertOptions kept;
  kept.keep = {{"*", *stored_type_from_name("group8")}};
  EXPECT_THAT(warnings(kept, embedding),
              ElementsAre("model.embed_tokens.weight: compressed-tensors has no codes for embeddings, so it is not "
                          "quantized"));
}

// A format without sparse tensors gets the numbers, which can be quantized.
TEST(ChooseTypeStep, SparseTensorsKeepTheirTypeOnlyWhereTheyStaySparse) {
  Tensor sparse;
  sparse.name = "s";
  sparse.shape = {2, 256};
  sparse.layout = Layout::sparse_coo;
  const auto add = [&](const char* role, DType dtype, std::size_t bytes) {
    sparse.parts.push_back(
        {.role = role, .dtype = dtype, .blob = make_memory_blob(std::vector<std::byte>(bytes), role)});
  };
  add("values", DType::f32, 4);
  add("coords", DType::u64, 16);
  ConvertOptions options;
  options.quantize = stored_type_from_name("q8_0");
  EXPECT_EQ(chosen("gguf", options, sparse), "q8_0");
  const StepTest test("zt", options);
  EXPECT_EQ(warnings_of(applied(make_choose_type_step, test, TensorPlan(sparse))).size(), 1U);
}

// A configuration may have megabytes, and a model 100,000 vectors: it is read once, not once for each of them.
TEST(ChooseTypeStep, ReadsTheConfigurationOnceForAllTensors) {
  static int readings;
  readings = 0;
  Format format = find_format_by_name("gguf");
  format.make_f32_test = [](const Model&) -> std::function<bool(const Tensor&)> {
    ++readings;
    return [](const Tensor& tensor) { return tensor.shape.size() == 1; };
  };
  const Model model;
  const ConvertOptions options;
  const Conversion conversion{model, model, format, options};
  const auto step = make_choose_type_step(conversion);
  for (int i = 0; i < 100; ++i) {
    const Tensor vector = zeros("v" + std::to_string(i), {2}, DType::bf16);
    TensorPlan plan(vector);
    step->apply(plan);
    EXPECT_EQ(to_string(*plan.type), "f32");
  }
  EXPECT_EQ(readings, 1);
}

}  // namespace
}  // namespace poise
