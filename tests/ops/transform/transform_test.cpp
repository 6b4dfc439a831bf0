// The effects of --dtype, --quantize, --keep, --only and --skip on tensors.
#include "ops/transform/transform.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include <poise/error.hpp>

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Model small_model() {
  Model model;
  const auto add = [&](const std::string& name, Shape shape, DType dtype) {
    const std::uint64_t bytes = *packed_bytes(dtype, *element_count(shape));
    model.add(make_dense(name, std::move(shape), dtype,
                         make_memory_blob(std::vector<std::byte>(static_cast<std::size_t>(bytes)), name)));
  };
  add("a.weight", {2, 128}, DType::bf16);
  add("b.weight", {2, 128}, DType::f32);
  add("b.norm", {128}, DType::bf16);
  add("ids", {4}, DType::i64);
  return model;
}

std::string type_of(const Tensor& tensor) {
  if (tensor.layout == Layout::quantized_group) return "group";
  return std::string(to_string(tensor.parts.front().dtype));
}

std::map<std::string, std::string> types(const ConvertOptions& options, std::string_view format = "zt") {
  std::map<std::string, std::string> result;
  const Transformed transformed = transform(small_model(), find_format_by_name(format), options);
  for (const Tensor& tensor : transformed.model.tensors()) result[tensor.name] = type_of(tensor);
  return result;
}

std::string refusal(const ConvertOptions& options, std::string_view format = "zt") {
  try {
    types(options, format);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
    return error.message();
  }
  return {};
}

using Types = std::map<std::string, std::string>;

TEST(Transform, NothingChangesWhereTheFormatHoldsIt) {
  EXPECT_EQ(types({}), (Types{{"a.weight", "bf16"}, {"b.weight", "f32"}, {"b.norm", "bf16"}, {"ids", "i64"}}));
  EXPECT_EQ(types({}, "alt"), (Types{{"a.weight", "f32"}, {"b.weight", "f32"}, {"b.norm", "f32"}, {"ids", "i64"}}));
}

TEST(Transform, DtypeIsForFloatingPointTensors) {
  ConvertOptions options;
  options.dtype = DType::f16;
  EXPECT_EQ(types(options), (Types{{"a.weight", "f16"}, {"b.weight", "f16"}, {"b.norm", "f16"}, {"ids", "i64"}}));
}

TEST(Transform, QuantizingKeepsVectorsAsFloat32) {
  ConvertOptions options;
  options.quantize = stored_type_from_name("qint8");
  EXPECT_EQ(types(options), (Types{{"a.weight", "qint8"}, {"b.weight", "qint8"}, {"b.norm", "f32"}, {"ids", "i64"}}));
  options.quantize = stored_type_from_name("group4");
  EXPECT_EQ(types(options), (Types{{"a.weight", "group"}, {"b.weight", "group"}, {"b.norm", "f32"}, {"ids", "i64"}}));
}

TEST(Transform, TheFirstPatternThatMatchesCounts) {
  ConvertOptions options;
  options.quantize = stored_type_from_name("qint4");
  options.keep = {{"b.weight", *stored_type_from_name("f16")},
                  {"*.weight", *stored_type_from_name("qint8")},
                  {"*norm", *stored_type_from_name("bf16")}};
  EXPECT_EQ(types(options), (Types{{"a.weight", "qint8"}, {"b.weight", "f16"}, {"b.norm", "bf16"}, {"ids", "i64"}}));
}

TEST(Transform, KeepWorksAlone) {
  ConvertOptions options;
  options.keep = {{"a.*", *stored_type_from_name("qint8")}, {"*norm", *stored_type_from_name("qint8")}};
  EXPECT_EQ(types(options), (Types{{"a.weight", "qint8"}, {"b.weight", "f32"}, {"b.norm", "f32"}, {"ids", "i64"}}));
}

TEST(Transform, KeepWarnsOfVectorsThatItDoesNotQuantize) {
  ConvertOptions options;
  options.keep = {{"b.norm", *stored_type_from_name("qint8")}};
  const Model made = transform(small_model(), find_format_by_name("zt"), options).model;
  EXPECT_EQ(type_of(*made.find("b.norm")), "f32");
  ASSERT_EQ(made.warnings.size(), 1U);
  EXPECT_EQ(made.warnings[0].message, "tensor b.norm: vectors are not quantized, so it is f32");
}

TEST(Transform, KeepWarnsOfTensorsThatItDoesNotChange) {
  ConvertOptions options;
  options.keep = {{"*", *stored_type_from_name("f16")}};
  const Model made = transform(small_model(), find_format_by_name("zt"), options).model;
  EXPECT_EQ(type_of(*made.find("ids")), "i64");
  ASSERT_EQ(made.warnings.size(), 1U);
  EXPECT_EQ(made.warnings[0].message,
            "tensor ids: its elements are not floating-point numbers, so keep does not change them");
}

// llama.cpp computes with norms in float32, and stores them so; without a configuration the file is not llama.cpp's.
TEST(Transform, WhatAFormatStoresAsFloat32KeepsItsValue) {
  Model model = small_model();
  const auto made = [&](const ConvertOptions& options) {
    std::map<std::string, std::string> result;
    const Transformed transformed = transform(model, find_format_by_name("gguf"), options);
    for (const Tensor& tensor : transformed.model.tensors()) result[tensor.name] = type_of(tensor);
    return result;
  };
  ConvertOptions options;
  options.dtype = DType::f16;
  EXPECT_EQ(made(options)["b.norm"], "f16");
  EXPECT_EQ(made({})["b.norm"], "bf16");
  model.card.model_type = "qwen2";
  model.config.emplace();
  EXPECT_EQ(made(options), (Types{{"a.weight", "f16"}, {"b.weight", "f16"}, {"b.norm", "f32"}, {"ids", "i64"}}));
  EXPECT_EQ(made({}), (Types{{"a.weight", "bf16"}, {"b.weight", "f32"}, {"b.norm", "f32"}, {"ids", "i64"}}));
  const Transformed cast = transform(model, find_format_by_name("gguf"), {});
  ASSERT_EQ(cast.casts.size(), 1U);
  EXPECT_EQ(cast.casts[0].name, "b.norm");
  options.keep = {{"b.norm", {DType::bf16}}};
  const Transformed kept = transform(model, find_format_by_name("gguf"), options);
  EXPECT_EQ(type_of(*kept.model.find("b.norm")), "f32");
  ASSERT_EQ(kept.model.warnings.size(), 1U);
  EXPECT_EQ(kept.model.warnings[0].message, "tensor b.norm: gguf files store it as f32, so keep has no effect");
}

// A tensor of codes is quantized again where another rule is asked for.
TEST(Transform, TheRuleOfAScaleCounts) {
  Model model;
  for (const float max : {0.0F, 1.0F}) {
    Tensor tensor = make_dense(max > 0 ? "ranged" : "symmetric", {2, 2}, DType::qint8,
                               make_memory_blob(std::vector<std::byte>(4, std::byte{3}), "codes"));
    tensor.layout = make_affine({1.0F / 255, 0, max, false});
    model.add(std::move(tensor));
  }
  const auto quantized = [&](const char* type) {
    ConvertOptions options;
    options.quantize = stored_type_from_name(type);
    std::vector<std::string> names;
    for (const QuantizedTensor& tensor : transform(model, find_format_by_name("alt"), options).quantized)
      names.push_back(tensor.name);
    return names;
  };
  EXPECT_THAT(quantized("qint8"), ElementsAre("ranged"));
  EXPECT_THAT(quantized("qint8:mse"), ElementsAre("ranged"));
  EXPECT_THAT(quantized("qint8:range"), ElementsAre("symmetric"));
  EXPECT_THAT(quantized("qint4"), ElementsAre("symmetric", "ranged"));
}

TEST(Transform, OnlyAndSkipSelect) {
  ConvertOptions options;
  options.only = {"b.*"};
  options.skip = {"*norm"};
  EXPECT_EQ(types(options), (Types{{"b.weight", "f32"}}));
}

TEST(Transform, InvalidOptionsAreRefused) {
  ConvertOptions options;
  options.keep = {{"no.such", *stored_type_from_name("f16")}};
  EXPECT_THAT(refusal(options), HasSubstr("\"no.such\" matches no tensor"));
  options = {};
  options.only = {"c*"};
  EXPECT_THAT(refusal(options), HasSubstr("\"c*\" matches no tensor"));
  options = {};
  options.dtype = DType::i8;
  EXPECT_THAT(refusal(options), HasSubstr("not i8"));
  options = {};
  options.quantize = stored_type_from_name("qint8");
  options.dtype = DType::f16;
  EXPECT_THAT(refusal(options), HasSubstr("exclude each other"));
  options = {};
  options.quantize = stored_type_from_name("f16");
  EXPECT_THAT(refusal(options), HasSubstr("not f16"));
  options.quantize = stored_type_from_name("group8");
  EXPECT_THAT(refusal(options, "alt"), HasSubstr("alt files hold no group8:128 tensors"));
  options.quantize = stored_type_from_name("qint8");
  EXPECT_THAT(refusal(options, "safetensors"), HasSubstr("safetensors files hold no qint8 tensors"));
  options = {};
  options.sparse = Layout::sparse_csr;
  options.min_sparsity = 2;
  EXPECT_THAT(refusal(options), HasSubstr("min_sparsity"));
}

TEST(Transform, MostlyZerosBecomeSparse) {
  ConvertOptions options;
  options.sparse = Layout::sparse_coo;
  Transformed transformed = transform(small_model(), find_format_by_name("zt"), options);
  make_sparse(transformed, options);
  for (const Tensor& tensor : transformed.model.tensors()) EXPECT_EQ(tensor.layout, Layout::sparse_coo) << tensor.name;
}

TEST(StoredTypeNames, AreReadAndWritten) {
  for (const std::string name :
       {"f32", "f16", "bf16", "qint8", "qint4:range", "qint8:mse", "group4:128", "group8:64"}) {
    EXPECT_EQ(to_string(stored_type_from_name(name).value()), name);
  }
  for (const std::string name :
       {"", "f64", "i8", "f16:mse", "qint8:", "group", "group5", "group4:", "group4:0", "group4:12", "group4:x"}) {
    EXPECT_EQ(stored_type_from_name(name), std::nullopt) << name;
  }
}

// Returns a model with blocks of two numbers of f4_e2m1, and a tensor of an unknown layout.
Model model_of_layouts() {
  const auto part = [](std::string role, DType dtype, std::size_t bytes) {
    return Part{.role = std::move(role),
                .dtype = dtype,

                .blob = make_memory_blob(std::vector<std::byte>(bytes, std::byte{0x7f}), "memory"),
                .digest = {}};
  };
  Model model;
  Tensor mx;
  mx.name = "mx";
  mx.shape = {4};
  mx.attributes = {{"block_size", 2}};
  mx.parts = {part("data", DType::f4_e2m1, 2), part("scales", DType::f8_e8m0, 2)};
  mx.layout = read_layout(mx, "zt.mx/1");
  model.add(mx);
  Tensor foo = mx;
  foo.name = "foo";
  foo.layout = TensorLayout::other("zt.foo/1");
  model.add(foo);
  return model;
}

TEST(Transform, MxIsKeptWhereTheFormatHasItAndElseDecoded) {
  const auto made = [](std::string_view format, std::optional<DType> dtype) {
    ConvertOptions options;
    options.only = {"mx"};
    options.dtype = dtype;
    const Transformed transformed = transform(model_of_layouts(), find_format_by_name(format), options);
    EXPECT_TRUE(transformed.model.warnings.empty());
    return type_of(transformed.model.tensors().front()) + "+" +
           std::string(to_string(transformed.model.tensors().front().layout));
  };
  EXPECT_EQ(made("zt", {}), "f4_e2m1+other");
  EXPECT_EQ(made("zt", DType::f16), "f16+dense");
  EXPECT_EQ(made("zt1", {}), "f32+dense");
  EXPECT_EQ(made("safetensors", {}), "f32+dense");
  EXPECT_EQ(made("alt", DType::f16), "f16+dense");
}

TEST(Transform, TensorsThatCannotBeCastAreReportedWithTheirLayout) {
  ConvertOptions options;
  options.dtype = DType::f32;
  const Transformed transformed = transform(model_of_layouts(), find_format_by_name("zt"), options);
  ASSERT_EQ(transformed.model.warnings.size(), 1U);
  EXPECT_EQ(transformed.model.warnings[0].message,
            "tensor foo (layout zt.foo/1): stored in a way that cannot be cast or quantized, so the type stays");
}

}  // namespace
}  // namespace poise
