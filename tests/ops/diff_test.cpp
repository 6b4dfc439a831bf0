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

Tensor floats(std::initializer_list<float> numbers) {
  return make_dense("x", {numbers.size()}, DType::f32, blob(numbers));
}

Tensor codes(std::initializer_list<std::int8_t> numbers, float delta) {
  Tensor tensor = make_dense("x", {numbers.size()}, DType::qint8, blob(numbers));
  tensor.layout = make_affine({.delta = delta});
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
  const DiffReport report = difference(floats({nan, 0.0F}), floats({-nan, -0.0F}));
  EXPECT_TRUE(report.same());
  EXPECT_EQ(report.equal_tensors, 1U);
  EXPECT_EQ(report.equal_as_numbers, 1U);
  EXPECT_EQ(difference(floats({nan, 0.0F}), floats({nan, 0.0F})).equal_as_numbers, 0U);
  EXPECT_FALSE(difference(floats({nan}), floats({1})).same());
}

TEST(Diff, ReportsWhatDiffersAndHowElementsAreStored) {
  using What = TensorDifference::What;
  const auto only = [](const DiffReport& report) { return report.tensors.at(0); };
  EXPECT_EQ(only(diff(of(floats({1})), Model())).what, What::only_in_a);
  EXPECT_EQ(only(diff(Model(), of(floats({1})))).what, What::only_in_b);
  EXPECT_EQ(only(difference(floats({1}), floats({1, 2}))).what, What::shape);
  EXPECT_EQ(only(difference(floats({1}), floats({2}))).what, What::values);
  const TensorDifference type = only(difference(floats({1, 2}), codes({1, 2}, 1)));
  EXPECT_EQ(type.what, What::type);
  EXPECT_EQ(type.a, "f32 [2]");
  EXPECT_EQ(type.b, "qint8 [2]");

  Tensor blocks = make_dense("x", {32}, DType::u8, make_memory_blob(std::vector<std::byte>(34), "blocks"));
  blocks.layout = read_layout(blocks, "gguf.q8_0/1");
  Tensor zeros = make_dense("x", {32}, DType::f32, make_memory_blob(std::vector<std::byte>(128), "zeros"));
  const TensorDifference stored = only(difference(blocks, zeros));
  EXPECT_EQ(stored.a, "q8_0 [32]");
  EXPECT_EQ(stored.values.value().different, 0U);
}

// The types of parts are shown if the type of the elements is the same.
TEST(Diff, NamesPartsWhereTheTypeIsTheSame) {
  const auto pair = [](DType dtype) {
    Tensor tensor = floats({1});
    tensor.layout = TensorLayout::other("pair");
    tensor.parts[0].dtype = dtype;
    return tensor;
  };
  const TensorDifference tensor = difference(pair(DType::f32), pair(DType::i32)).tensors.at(0);
  EXPECT_EQ(tensor.a, "pair f32 [1]");
  EXPECT_EQ(tensor.b, "pair i32 [1]");
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
  const std::vector<Value> values = {kInfinity,
                                     -kInfinity,
                                     std::nan(""),
                                     nullptr,
                                     Value::Bytes{std::byte{0}},
                                     "00",
                                     Value::Array{kInfinity},
                                     Value::Array{-kInfinity}};
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
  a.layout = TensorLayout::other("pair");
  a.parts.push_back({.role = "extra", .dtype = DType::i8, .blob = blob<std::int8_t>({1}), .digest = {}});
  Tensor b = a;
  std::swap(b.parts[0], b.parts[1]);
  EXPECT_TRUE(difference(a, b).same());
}

TEST(Diff, PartsNextToDataMatter) {
  const auto tensor = [](std::int8_t extra) {
    Tensor made = floats({1});
    made.parts.push_back({.role = "extra", .dtype = DType::i8, .blob = blob<std::int8_t>({extra}), .digest = {}});
    return made;
  };
  EXPECT_TRUE(difference(tensor(1), tensor(1)).same());
  EXPECT_EQ(difference(tensor(1), tensor(2)).tensors.size(), 1U);
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

TEST(Diff, OtherCodesForTheSameNumbersAreNoDifference) {
  EXPECT_TRUE(difference(codes({2, 4, -6}, 0.5F), codes({1, 2, -3}, 1)).same());
}

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

template <typename Number>
Tensor numbers(DType dtype, std::initializer_list<Number> values) {
  return make_dense("x", {values.size() * sizeof(Number) * 8 / info(dtype).bits}, dtype, blob(values));
}

TensorDifference::Values values_of(const Tensor& a, const Tensor& b) {
  return difference(a, b).tensors.at(0).values.value();
}

TEST(Diff, Float64IsComparedAndMeasuredAsSuch) {
  const auto tensor = [](double number) { return numbers(DType::f64, {1.0, number}); };
  EXPECT_TRUE(difference(tensor(1), tensor(1)).same());
  const auto values = values_of(tensor(1), tensor(1 + 0x1p-40));
  EXPECT_EQ(values.different, 1U);
  EXPECT_EQ(values.max_absolute, 0x1p-40);
  EXPECT_NEAR(values.rms, 0x1p-40 / std::sqrt(2.0), 1e-25);
  EXPECT_EQ(values_of(numbers(DType::f32, {1.0F}), numbers(DType::f64, {1 + 0x1p-40})).max_absolute, 0x1p-40);
}

TEST(Diff, Float64ThatFloat32CannotHoldIsMeasured) {
  const auto tensor = [](double number) { return numbers(DType::f64, {number}); };
  EXPECT_TRUE(difference(tensor(1e300), tensor(1e300)).same());
  const auto large = values_of(tensor(1e300), tensor(3e300));
  EXPECT_EQ(large.max_absolute, 2e300);
  EXPECT_DOUBLE_EQ(large.rms, 2e300);
  EXPECT_DOUBLE_EQ(values_of(tensor(1e-300), tensor(3e-300)).rms, 2e-300);
  EXPECT_TRUE(std::isinf(values_of(tensor(INFINITY), tensor(1)).rms));
}

TEST(Diff, RmsDoesNotDependOnTheOrderOfDifferences) {
  EXPECT_NEAR(values_of(floats({0, 0, 0, 0}), floats({3, 0, 4, 12})).rms, 6.5, 1e-12);
  EXPECT_NEAR(values_of(floats({0, 0, 0, 0}), floats({12, 4, 0, 3})).rms, 6.5, 1e-12);
}

// Beyond 2^53 float64 has no place for every integer.
TEST(Diff, IntegersAreComparedExactly) {
  constexpr std::int64_t kLarge = (std::int64_t{1} << 62) + 1;
  const auto values = values_of(numbers<std::int64_t>(DType::i64, {kLarge, -kLarge, 7}),
                                numbers<std::int64_t>(DType::i64, {kLarge + 1, -kLarge, 4}));
  EXPECT_EQ(values.different, 2U);
  EXPECT_EQ(values.max_absolute, 3);
  constexpr std::uint64_t kTop = UINT64_MAX;
  EXPECT_EQ(values_of(numbers<std::uint64_t>(DType::u64, {kTop}), numbers<std::uint64_t>(DType::u64, {kTop - 1}))
                .max_absolute,
            1);
  const auto apart =
      values_of(numbers<std::int64_t>(DType::i64, {INT64_MIN}), numbers<std::uint64_t>(DType::u64, {kTop}));
  EXPECT_EQ(apart.max_absolute, 0x1p63 + 0x1p64);
  EXPECT_EQ(
      values_of(numbers<std::int8_t>(DType::i8, {-1, 2}), numbers<std::uint64_t>(DType::u64, {kTop, 2})).different, 1U);
}

TEST(Diff, BooleansAndComplexNumbersAreCompared) {
  EXPECT_EQ(
      values_of(numbers<std::uint8_t>(DType::boolean, {0, 1, 1}), numbers<std::uint8_t>(DType::boolean, {1, 1, 0}))
          .different,
      2U);
  const auto values =
      values_of(numbers<float>(DType::complex64, {1, 2, 3, 4}), numbers<float>(DType::complex64, {1, 2, 6, 8}));
  EXPECT_EQ(values.different, 1U);
  EXPECT_EQ(values.max_absolute, 5);
  EXPECT_EQ(values_of(numbers<double>(DType::complex128, {1, 2}), numbers<double>(DType::complex128, {1, 2 + 0x1p-40}))
                .max_absolute,
            0x1p-40);
  EXPECT_EQ(values_of(numbers<float>(DType::complex64, {1, 2}), numbers<double>(DType::complex128, {1, 2})).different,
            0U);
}

TEST(Diff, IntegersAreComparedWithFloatsExactly) {
  const auto compare = [](double a, std::int64_t b) {
    return values_of(numbers(DType::f64, {a}), numbers<std::int64_t>(DType::i64, {b}));
  };
  constexpr std::int64_t kOdd = (std::int64_t{1} << 53) + 1;  // float64 has no place for it
  EXPECT_EQ(compare(0x1p53, kOdd).different, 1U);
  EXPECT_EQ(compare(0x1p53, kOdd).max_absolute, 1);
  EXPECT_EQ(compare(0x1p53 + 2, kOdd).max_absolute, 1);
  EXPECT_EQ(compare(-0x1p63, INT64_MIN).different, 0U);
  EXPECT_EQ(compare(0x1p63, INT64_MAX).max_absolute, 1);
  EXPECT_EQ(compare(-1 - 0x1p-52, -1).max_absolute, 0x1p-52);
  EXPECT_EQ(compare(NAN, 0).different, 1U);
  EXPECT_TRUE(std::isinf(compare(-INFINITY, INT64_MIN).max_absolute));
  EXPECT_EQ(values_of(numbers<std::uint64_t>(DType::u64, {UINT64_MAX}), floats({0x1p64F})).max_absolute, 1);
  EXPECT_EQ(values_of(floats({0, 1}), numbers<std::int32_t>(DType::i32, {0, 1})).different, 0U);
  EXPECT_EQ(values_of(numbers<std::uint8_t>(DType::boolean, {0, 1}), floats({0, 1.5F})).max_absolute, 0.5);
}

TEST(Diff, ComplexNumbersAreNotComparedWithRealOnes) {
  EXPECT_FALSE(difference(numbers<float>(DType::complex64, {1, 0}), floats({1})).tensors.at(0).values);
  EXPECT_FALSE(difference(numbers<float>(DType::complex64, {1, 0}), numbers<std::int32_t>(DType::i32, {1}))
                   .tensors.at(0)
                   .values);
}

Part part(std::string role, DType dtype, BlobPtr blob) {
  return {.role = std::move(role), .dtype = dtype, .blob = std::move(blob), .digest = {}};
}

template <typename Index>
Tensor coordinates(Shape shape, DType index, std::initializer_list<Index> cells, DType dtype, BlobPtr values) {
  Tensor tensor;
  tensor.name = "x";
  tensor.shape = std::move(shape);
  tensor.layout = Layout::sparse_coo;
  tensor.parts = {part("values", dtype, std::move(values)), part("coords", index, blob(cells))};
  return tensor;
}

// Its elements would take 4 TiB.
TEST(Diff, OfSparseTensorsOnlyStoredElementsAreLookedAt) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;
  const Tensor a =
      coordinates<std::uint64_t>({kHuge}, DType::u64, {5, 7, kHuge - 1}, DType::f32, blob<float>({1, 2, 3}));
  const Tensor b =
      coordinates<std::uint64_t>({kHuge}, DType::u64, {kHuge - 1, 5, 8}, DType::f32, blob<float>({3, 1, -4}));
  const auto values = values_of(a, b);
  EXPECT_EQ(values.different, 2U);
  EXPECT_EQ(values.max_absolute, 4);
  EXPECT_NEAR(values.rms, std::sqrt(20.0) * 0x1p-20, 1e-18);
  const Tensor reordered =
      coordinates<std::uint64_t>({kHuge}, DType::u64, {kHuge - 1, 7, 5}, DType::f32, blob<float>({3, 2, 1}));
  EXPECT_TRUE(difference(a, reordered).same());
}

TEST(Diff, AStoredZeroIsAZero) {
  const Tensor a = coordinates<std::uint64_t>({4}, DType::u64, {1, 2}, DType::i64, blob<std::int64_t>({9, 0}));
  EXPECT_TRUE(
      difference(a, coordinates<std::uint64_t>({4}, DType::u64, {1}, DType::i64, blob<std::int64_t>({9}))).same());
  EXPECT_TRUE(difference(a, coordinates<std::uint64_t>({4}, DType::u64, {0, 1}, DType::i64, blob<std::int64_t>({0, 9})))
                  .same());
  EXPECT_EQ(values_of(a, coordinates<std::uint64_t>({4}, DType::u64, {}, DType::i64, blob<std::int64_t>({}))).different,
            1U);
}

TEST(Diff, TheTypeOfIndicesIsNoDifference) {
  const Tensor wide = coordinates<std::uint64_t>({2, 3}, DType::u64, {0, 1, 2, 0}, DType::f32, blob<float>({1, 2}));
  EXPECT_TRUE(
      difference(wide, coordinates<std::int8_t>({2, 3}, DType::i8, {0, 1, 2, 0}, DType::f32, blob<float>({1, 2})))
          .same());
}

// Version 2 of zTensor spells a type that Poise does not know "u8:int3", version 1 "int3".
TEST(Diff, TheSpellingOfAnUnknownTypeIsNoDifference) {
  const auto unknown = [](std::string type) {
    Tensor tensor = make_dense("x", {3}, DType::u8, blob<std::uint8_t>({1, 2, 3}));
    tensor.parts[0].dtype = DType::unknown;
    tensor.parts[0].spelling = std::move(type);
    return tensor;
  };
  EXPECT_TRUE(difference(unknown("u8:int3"), unknown("int3")).same());
  EXPECT_FALSE(difference(unknown("u8:int3"), unknown("int4")).same());
  EXPECT_FALSE(difference(unknown("u16:int3"), unknown("int3")).same());
}

TEST(Diff, SparseAndDenseTensorsAreComparedByElements) {
  const Tensor sparse = coordinates<std::uint64_t>({3}, DType::u64, {1}, DType::f32, blob<float>({2}));
  EXPECT_EQ(values_of(sparse, floats({0, 2, 0})).different, 0U);
  EXPECT_EQ(values_of(sparse, floats({0, 2, 1})).different, 1U);
}

// Returns 2 rows of 8 codes of 4 bits, two groups a row.
Tensor groups(Attributes attributes, DType word = DType::u32) {
  Tensor tensor;
  tensor.name = "x";
  tensor.shape = {2, 8};
  tensor.attributes = std::move(attributes);
  tensor.parts = {part("packed_weight", word, blob<std::uint32_t>({0x76543210, 0xfedcba98})),
                  part("scales", DType::f32, blob<float>({1, 2, 3, 4})),
                  part("zeros", DType::f32, blob<float>({8, 8, 8, 8}))};
  tensor.layout = read_layout(tensor, "quantized_group");
  return tensor;
}

Attributes version1_groups() { return {{"bits", 4}, {"group_size", 4}, {"packing", "8_per_u32"}}; }

Attributes version2_groups(const char* order = "lsb_first") {
  return {{"axis", 1},
          {"bits", 4},
          {"group_size", 4},
          {"packing", Attributes{{"word", "u32"}, {"order", order}, {"per_word", 8}}},
          {"scale_form", "f32_factors"},
          {"zero_point", Attributes{{"form", "tensor"}, {"packing", "plain"}}}};
}

TEST(Diff, TheSpellingOfASchemeIsNoDifference) {
  EXPECT_TRUE(difference(groups(version1_groups()), groups(version2_groups())).same());
  Attributes with_axis = version1_groups();
  with_axis.set("axis", 1);
  EXPECT_TRUE(difference(groups(version1_groups()), groups(with_axis)).same());
  EXPECT_TRUE(difference(groups(version1_groups()),
                         groups({{"packing", "8_per_i32"}, {"group_size", 4}, {"bits", 4}}, DType::i32))
                  .same());
}

TEST(Diff, AnotherSchemeForTheSameBytesIsADifference) {
  const DiffReport report = difference(groups(version1_groups()), groups(version2_groups("msb_first")));
  EXPECT_EQ(report.tensors.at(0).values.value().different, 16U);
  Attributes noted = version2_groups();
  noted.set("note", "mine");
  const DiffReport other = difference(groups(version1_groups()), groups(noted));
  ASSERT_EQ(other.fields.size(), 1U);
  EXPECT_EQ(other.fields[0].field, "tensors.x.note");
}

TEST(Diff, MapsAreTheSameWhateverTheOrderOfTheirKeys) {
  const auto with = [](Value value) {
    Model model;
    model.attributes = {{"k", std::move(value)}};
    return model;
  };
  const Attributes ab = {{"a", 1}, {"b", Attributes{{"c", 2}, {"d", std::nan("")}}}};
  const Attributes ba = {{"b", Attributes{{"d", std::nan("")}, {"c", 2}}}, {"a", 1}};
  EXPECT_TRUE(diff(with(ab), with(ba)).same());
  EXPECT_TRUE(diff(with(Value::Array{ab}), with(Value::Array{ba})).same());
  EXPECT_TRUE(diff(with(Value::Pairs{{1, "x"}, {ab, "y"}}), with(Value::Pairs{{ba, "y"}, {1, "x"}})).same());
  EXPECT_FALSE(diff(with(Value::Array{1, 2}), with(Value::Array{2, 1})).same());
  EXPECT_FALSE(diff(with(ab), with(Attributes{{"a", 1}})).same());
  EXPECT_FALSE(diff(with(Attributes{{"a", "b"}, {"c", "d"}}), with(Attributes{{"a", "d"}, {"c", "b"}})).same());
  EXPECT_FALSE(diff(with(Value::Pairs{{1, 2}}), with(Value::Pairs{{2, 1}})).same());
  EXPECT_FALSE(diff(with(Attributes{{"a", 1}}), with(Attributes{{"a", 1.0}})).same());
}

// ALT gives the token at an id of BOS, EOS or padding that type; only bytes and the unknown token keep theirs.
TEST(Diff, IdsOfAVocabularyDecideTypesOfTokens) {
  const auto model = [](TokenType type, std::int32_t eos_id) {
    Model made;
    made.vocabulary.emplace().add("a", 0, type);
    made.vocabulary->eos_id = eos_id;
    return made;
  };
  using enum TokenType;
  for (const TokenType type : {normal, control, unused, user_defined, bos})
    EXPECT_TRUE(diff(model(type, 0), model(eos, 0)).same()) << to_string(type);
  for (const TokenType type : {byte, unknown})
    EXPECT_FALSE(diff(model(type, 0), model(eos, 0)).same()) << to_string(type);
  EXPECT_FALSE(diff(model(normal, -1), model(eos, -1)).same());
}

// Each setting of a vocabulary is a field of the report.
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
  EXPECT_EQ(fields([](Vocabulary& v) { v.remove_extra_whitespaces = true; }),
            Names{"vocabulary.remove_extra_whitespaces"});
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
