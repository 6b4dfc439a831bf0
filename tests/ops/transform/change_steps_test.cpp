// The steps that change tensors, one by one.
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/block_type.hpp"
#include "ops/transform/support.hpp"
#include "support/errors.hpp"
#include "tensor/block_layout.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor matrix_of(const std::vector<float>& values, Shape shape) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return make_dense("m", std::move(shape), DType::f32, make_memory_blob(std::move(bytes), "m"));
}

std::vector<float> values_of(const Tensor& tensor) {
  const BlobPtr blob = make_dense_blob(tensor, DType::f32);
  std::vector<float> values(static_cast<std::size_t>(blob->size()) / sizeof(float));
  blob->read(0, std::as_writable_bytes(std::span(values)));
  return values;
}

TensorPlan plan_of(const Tensor& tensor, std::string_view type) {
  TensorPlan plan(tensor);
  plan.type = stored_type_from_name(type);
  return plan;
}

TEST(CastStep, CastsAndReportsBothTypes) {
  const StepTest test("zt");
  Tensor tensor = matrix_of({1, 65536}, {1, 2});
  tensor.attributes = {{"kept", true}};
  const TensorPlan plan = applied(make_cast_step, test, plan_of(tensor, "bf16"));
  EXPECT_THAT(values_of(plan.tensor), ElementsAre(1, 65536));
  EXPECT_EQ(plan.tensor.parts.front().dtype, DType::bf16);
  EXPECT_NE(plan.tensor.attributes.find("kept"), nullptr);
  ASSERT_TRUE(plan.cast);
  EXPECT_EQ(plan.cast->from, DType::f32);
  EXPECT_EQ(plan.cast->to, DType::bf16);
  EXPECT_FALSE(applied(make_cast_step, test, TensorPlan(tensor)).cast);        // no type was chosen
  EXPECT_FALSE(applied(make_cast_step, test, plan_of(tensor, "qint8")).cast);  // the next step's
}

// Writes an importance matrix in llama.cpp's older format, with the weights of tensor "m".
class OlderImatrix {
 public:
  explicit OlderImatrix(const std::vector<float>& weights) {
    const auto put = [&](const auto& value) { file_.write(reinterpret_cast<const char*>(&value), sizeof value); };
    put(std::int32_t{1});  // entries
    put(std::int32_t{1});  // bytes of the name
    file_ << 'm';
    put(std::int32_t{1});  // calls
    put(static_cast<std::int32_t>(weights.size()));
    for (const float weight : weights) put(weight);
    file_.close();
  }
  OlderImatrix(const OlderImatrix&) = delete;
  ~OlderImatrix() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_ = testing::TempDir() + "zeros.imatrix";
  std::ofstream file_{path_, std::ios::binary};
};

// With weights of zero no error would count, and every code would be zero.
TEST(QuantizeStep, WeightsOfZerosCountAsNone) {
  std::vector<float> values(2 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.01F * static_cast<float>(i % 37) - 0.2F;
  const auto quantized = [&](const Tensor& tensor, const std::vector<float>& weights) {
    const OlderImatrix file(weights);
    ConvertOptions options;
    options.quantize = stored_type_from_name("q4_0");
    if (!weights.empty()) options.imatrix = file.path();
    const StepTest test("gguf", options);
    return applied(make_quantize_step, test, plan_of(tensor, "q4_0"));
  };
  const Tensor matrix = matrix_of(values, {2, 64});
  const std::vector<float> without = values_of(quantized(matrix, {}).tensor);
  for (const float least : {0.0F, 1e-40F, 1e-36F}) {
    const TensorPlan plan = quantized(matrix, std::vector<float>(64, least));
    EXPECT_EQ(values_of(plan.tensor), without) << least;
    EXPECT_THAT(warnings_of(plan),
                ElementsAre("m: the importance matrix has only zeros for it, so it is quantized without weights"));
  }
  // One of two stacked matrices: its columns weigh the same, as those that llama.cpp has never seen.
  const Tensor stack = matrix_of(values, {2, 1, 64});
  std::vector<float> weights(2 * 64, 0);
  for (std::size_t i = 64; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
  const TensorPlan plan = quantized(stack, weights);
  std::fill_n(weights.begin(), 64, 1.0F);
  EXPECT_EQ(values_of(plan.tensor), values_of(quantized(stack, weights).tensor));
  EXPECT_THAT(warnings_of(plan), ElementsAre("m: the importance matrix has only zeros for 1 of its 2 matrices, "
                                             "whose columns weigh the same"));
}

// As in llama-quantize, the embedding and the output matrix need no weights.
TEST(QuantizeStep, TypesOfFewBitsNeedWeights) {
  std::vector<float> values(2 * 256);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.01F * static_cast<float>(i % 37) - 0.2F;
  const OlderImatrix file(std::vector<float>(256, 2.0F));
  ConvertOptions options;
  options.quantize = stored_type_from_name("iq2_xs");
  const StepTest without("gguf", options);
  options.imatrix = file.path();
  const StepTest with("gguf", options);
  Tensor matrix = matrix_of(values, {2, 256});
  EXPECT_EQ(applied(make_quantize_step, with, plan_of(matrix, "iq2_xs")).tensor.size_bytes(), 2U * 74U);
  EXPECT_EQ(applied(make_quantize_step, without, plan_of(matrix, "iq3_s")).tensor.size_bytes(), 2U * 110U);
  const Error missing = support::error_of([&] { applied(make_quantize_step, without, plan_of(matrix, "iq2_xs")); });
  EXPECT_EQ(missing.kind(), ErrorKind::unsupported);
  EXPECT_THAT(missing.what(), HasSubstr("tensor m: iq2_xs needs weights of its columns, and there is no importance"));
  EXPECT_THAT(missing.what(), HasSubstr("`poise imatrix`"));
  EXPECT_THAT(missing.remedies(), ElementsAre(Remedy{Remedy::Kind::keep, "q4_k", "m"}));
  matrix.name = "model.layers.0.mlp.up_proj.weight";
  const Error other = support::error_of([&] { applied(make_quantize_step, with, plan_of(matrix, "iq2_xs")); });
  EXPECT_THAT(other.what(), HasSubstr("the importance matrix has none for it"));
  for (const char* const name : {"model.embed_tokens.weight", "lm_head.weight"}) {
    matrix.name = name;
    EXPECT_EQ(applied(make_quantize_step, without, plan_of(matrix, "iq2_xs")).tensor.size_bytes(), 2U * 74U) << name;
  }
}

TEST(QuantizeStep, ReportsSizesBeforeAndAfter) {
  const StepTest test("gguf");
  const Tensor tensor = matrix_of(std::vector<float>(64, 1), {2, 32});
  const TensorPlan plan = applied(make_quantize_step, test, plan_of(tensor, "q8_0"));
  ASSERT_TRUE(plan.quantized);
  EXPECT_EQ(plan.quantized->bytes_in, 256U);
  EXPECT_EQ(plan.quantized->bytes_out, 68U);  // two blocks: a half and 32 codes each
  EXPECT_EQ(values_of(plan.tensor).size(), 64U);
  EXPECT_FALSE(applied(make_quantize_step, test, plan_of(tensor, "f16")).quantized);
}

TEST(TransposeSteps, MakeBlocksOfColumnsWhereTheTargetReadsThose) {
  StepTest test("gguf");
  test.model.card.model_type = "gpt2";
  test.model.config.emplace();
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Tensor tensor = matrix_of(values, {32, 2});
  tensor.name = "transformer.h.0.attn.c_attn.weight";  // of a Conv1D: [inputs, outputs]
  ASSERT_TRUE(needs_blocks_along_columns(test.conversion, tensor));
  TensorPlan plan = applied(make_rows_for_blocks_step, test, plan_of(tensor, "q8_0"));
  EXPECT_TRUE(plan.is_transposed);
  EXPECT_THAT(plan.tensor.shape, ElementsAre(2, 32));
  EXPECT_EQ(values_of(plan.tensor)[1], 2);
  plan = applied(make_transpose_back_step, test, applied(make_quantize_step, test, std::move(plan)));
  EXPECT_FALSE(plan.is_transposed);
  EXPECT_THAT(plan.tensor.shape, ElementsAre(32, 2));
  EXPECT_EQ(get_block_direction(plan.tensor.layout), BlocksAlong::columns);
  EXPECT_FALSE(applied(make_rows_for_blocks_step, test, plan_of(tensor, "f16")).is_transposed);
}

TEST(FitLayoutStep, MakesDenseWhatTheTargetCannotHold) {
  const Tensor tensor = matrix_of({1, 2, 3, 4}, {2, 2});
  const Tensor codes = applied(make_quantize_step, StepTest("zt"), plan_of(tensor, "qint8")).tensor;
  EXPECT_EQ(applied(make_fit_layout_step, StepTest("zt"), TensorPlan(codes)).tensor.layout, Layout::affine);
  EXPECT_EQ(applied(make_fit_layout_step, StepTest("safetensors"), TensorPlan(codes)).tensor.layout, Layout::dense);
}

TEST(KeepOtherPartsStep, KeepsThemWhereTheTensorStaysDense) {
  const StepTest test("zt");
  Tensor tensor = zeros("t", {2}, DType::f32);
  tensor.parts.push_back(
      Part{.role = "mask", .dtype = DType::u8, .blob = make_memory_blob({std::byte{1}}, "mask"), .digest = {}});
  const TensorPlan cast = applied(make_cast_step, test, plan_of(tensor, "f16"));
  EXPECT_EQ(cast.tensor.parts.size(), 1U);
  const TensorPlan kept = applied(make_keep_other_parts_step, test, cast);
  ASSERT_EQ(kept.tensor.parts.size(), 2U);
  EXPECT_EQ(kept.tensor.parts[1].role, "mask");
  EXPECT_THAT(warnings_of(kept), IsEmpty());
  const TensorPlan codes = applied(make_quantize_step, test, plan_of(tensor, "qint8"));
  EXPECT_THAT(warnings_of(applied(make_keep_other_parts_step, test, codes)),
              ElementsAre("t: " + std::string(kLostParts)));
}

TEST(SparsifyStep, MarksDenseTensors) {
  ConvertOptions options;
  options.sparse = Layout::sparse_csr;
  const StepTest test("zt", options);
  const auto is_marked = [&](const Tensor& tensor) {
    return applied(make_sparsify_step, test, TensorPlan(tensor)).may_become_sparse;
  };
  EXPECT_TRUE(is_marked(zeros("m", {2, 2}, DType::f32)));
  EXPECT_FALSE(is_marked(zeros("v", {2}, DType::f32)));  // CSR is for matrices
  const Tensor matrix = zeros("m", {2, 2}, DType::f32);
  EXPECT_FALSE(applied(make_sparsify_step, StepTest("zt"), TensorPlan(matrix)).may_become_sparse);
}

}  // namespace
}  // namespace poise
