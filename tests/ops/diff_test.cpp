// Expected numbers are worked out by hand.
#include <poise/diff.hpp>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace poise {
namespace {

template <typename Number>
BlobPtr blob(std::initializer_list<Number> numbers) {
  const auto bytes = std::as_bytes(std::span(numbers.begin(), numbers.size()));
  return make_memory_blob({bytes.begin(), bytes.end()}, "numbers");
}

Tensor floats(std::initializer_list<float> numbers) { return make_dense("x", {numbers.size()}, DType::f32, blob(numbers)); }

Tensor codes(std::initializer_list<std::int8_t> numbers, float delta) {
  Tensor tensor = make_dense("x", {numbers.size()}, DType::qint8, blob(numbers));
  tensor.layout = Layout::affine;
  tensor.affine = make_affine({.delta = delta});
  return tensor;
}

Model of(Tensor tensor) {
  Model model;
  model.add(std::move(tensor));
  return model;
}

DiffReport difference(Tensor a, Tensor b) { return diff(of(std::move(a)), of(std::move(b))); }

TEST(Diff, EqualTensorsAreCounted) {
  const DiffReport report = difference(floats({1, 2, 3}), floats({1, 2, 3}));
  EXPECT_TRUE(report.same());
  EXPECT_EQ(report.equal_tensors, 1U);
}

TEST(Diff, CountsAndMeasuresWhatDiffers) {
  const DiffReport report = difference(floats({1, 2, 3, 4}), floats({1, 4, 3, 3}));
  ASSERT_EQ(report.tensors.size(), 1U);
  const auto& values = report.tensors[0].values.value();
  EXPECT_EQ(values.different, 2U);
  EXPECT_EQ(values.max_absolute, 2);
  EXPECT_NEAR(values.rms, std::sqrt(5.0 / 4), 1e-12);
}

TEST(Diff, NanEqualsNanWhateverItsBitsAndZeroEqualsMinusZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(difference(floats({nan, 0.0F}), floats({-nan, -0.0F})).same());
  EXPECT_FALSE(difference(floats({nan}), floats({1})).same());
}

TEST(Diff, AttributesOfTensorsAreFields) {
  Tensor a = floats({1});
  Tensor b = floats({1});
  a.attributes = {{"rotate", 1}, {"same", 2}, {"nan", std::numeric_limits<double>::quiet_NaN()}};
  b.attributes = {{"rotate", 2}, {"same", 2}, {"nan", std::numeric_limits<double>::quiet_NaN()}};
  const DiffReport report = difference(a, b);
  ASSERT_EQ(report.fields.size(), 1U);
  EXPECT_EQ(report.fields[0].field, "tensors.x.rotate");
  EXPECT_EQ(report.fields[0].b, "2");
}

// JSON has one word for all of them.
TEST(Diff, ValuesThatLookAlikeAsTextAreNotTheSame) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<Value> values = {
      kInfinity, -kInfinity, std::nan(""), nullptr, Value::Bytes{std::byte{0}}, "00", Value::Array{kInfinity}, Value::Array{-kInfinity}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < values.size(); ++j) {
      Model a;
      Model b;
      a.attributes = {{"k", values[i]}};
      b.attributes = {{"k", values[j]}};
      EXPECT_EQ(diff(a, b).same(), i == j) << i << " " << j;
    }
  }
}

TEST(Diff, TheOrderOfPartsDoesNotMatter) {
  Tensor a = floats({1});
  a.layout = Layout::other;
  a.layout_name = "pair";
  a.parts.push_back({.role = "extra", .dtype = DType::i8, .dtype_name = "i8", .blob = blob<std::int8_t>({1}), .digest = {}});
  Tensor b = a;
  std::swap(b.parts[0], b.parts[1]);
  EXPECT_TRUE(difference(a, b).same());
}

TEST(Diff, EqualCodesWithOtherScalesAreOtherNumbers) {
  EXPECT_TRUE(difference(codes({1, 2, -3, 0}, 0.5F), codes({1, 2, -3, 0}, 0.5F)).same());
  const DiffReport report = difference(codes({1, 2, -3, 0}, 0.5F), codes({1, 2, -3, 0}, 1));
  ASSERT_EQ(report.tensors.size(), 1U);
  const auto& values = report.tensors[0].values.value();
  EXPECT_EQ(values.different, 3U);
  EXPECT_EQ(values.max_absolute, 1.5);
  EXPECT_NEAR(values.rms, std::sqrt(3.5 / 4), 1e-12);
}

TEST(Diff, OtherCodesForTheSameNumbersAreNoDifference) { EXPECT_TRUE(difference(codes({2, 4, -6}, 0.5F), codes({1, 2, -3}, 1)).same()); }

TEST(Diff, TypesAndShapesAreShown) {
  Tensor column = floats({1, 2});
  column.shape = {2, 1};
  const DiffReport report = difference(floats({1, 2}), column);
  ASSERT_EQ(report.tensors.size(), 1U);
  EXPECT_EQ(report.tensors[0].a, "f32 [2]");
  EXPECT_EQ(report.tensors[0].b, "f32 [2, 1]");
  EXPECT_FALSE(report.tensors[0].values);

  const Tensor doubles = make_dense("x", {2}, DType::f64, blob<double>({1, 2}));
  const DiffReport types = difference(floats({1, 2}), doubles);
  ASSERT_EQ(types.tensors.size(), 1U);
  EXPECT_EQ(types.tensors[0].values.value().different, 0U);
}

TEST(Diff, Float64IsComparedExactly) {
  const auto tensor = [](double number) { return make_dense("x", {1}, DType::f64, blob({number})); };
  EXPECT_TRUE(difference(tensor(1), tensor(1)).same());
  EXPECT_FALSE(difference(tensor(1), tensor(1 + 0x1p-50)).same());
}

TEST(Diff, Float64ThatFloat32CannotHoldDiffers) {
  const auto tensor = [](double number) { return make_dense("x", {1}, DType::f64, blob({number})); };
  EXPECT_TRUE(difference(tensor(1e300), tensor(1e300)).same());
  const DiffReport report = difference(tensor(1e300), tensor(2e300));
  ASSERT_EQ(report.tensors.size(), 1U);
  EXPECT_FALSE(report.tensors[0].values.has_value());
}

// How text becomes tokens is a field for each thing that it depends on.
TEST(Diff, VocabulariesDifferInMoreThanTokens) {
  const auto model = [](float score) {
    Model made;
    made.vocabulary.emplace().add("a", score, TokenType::normal);
    made.vocabulary->merges = {{"a", "b"}};
    return made;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(diff(model(nan), model(nan)).same());
  EXPECT_FALSE(diff(model(nan), model(0)).same());
  const auto fields = [&](auto change) {
    Model other = model(1);
    change(*other.vocabulary);
    std::vector<std::string> names;
    for (const FieldDifference& field : diff(model(1), other).fields) names.push_back(field.field);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(fields([](Vocabulary& v) { v.kind = VocabularyKind::byte_pair; }), Names{"vocabulary.kind"});
  EXPECT_EQ(fields([](Vocabulary& v) { v.normalizer = "nfkc"; }), Names{"vocabulary.normalizer"});
  EXPECT_EQ(fields([](Vocabulary& v) { v.add_dummy_prefix = false; }), Names{"vocabulary.add_dummy_prefix"});
  EXPECT_EQ(fields([](Vocabulary& v) { v.remove_extra_whitespaces = true; }), Names{"vocabulary.remove_extra_whitespaces"});
  EXPECT_EQ(fields([](Vocabulary& v) { v.merges = {{"b", "a"}}; }), Names{"vocabulary.merges"});
}

TEST(Diff, AttributesOfDenseTensorsAreFieldsAndNoNumbers) {
  const auto tensor = [](double attribute) {
    Tensor made = make_dense("x", {1}, DType::f64, blob({1.0}));
    made.attributes.set("k", attribute);
    return made;
  };
  EXPECT_TRUE(difference(tensor(1), tensor(2)).tensors.empty());
  EXPECT_EQ(difference(tensor(1), tensor(2)).fields.size(), 1U);
  EXPECT_TRUE(difference(tensor(std::nan("")), tensor(std::nan(""))).same());
}

TEST(Diff, ATensorThatOneModelLacksIsADifference) {
  const DiffReport report = diff(of(floats({1})), Model());
  ASSERT_EQ(report.tensors.size(), 1U);
  EXPECT_EQ(report.tensors[0].a, "f32 [1]");
  EXPECT_EQ(report.tensors[0].b, "-");
}

}  // namespace
}  // namespace poise
