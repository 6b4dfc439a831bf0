// Folds MXFP4 and writes it back. Source of the parts: convert_moe_packed_tensors() of transformers.
#include "schemes/scheme.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include <poise/convert.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/values.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"
#include "tensor/mx_scheme.hpp"

namespace poise {
namespace {

using support::error_of;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor bytes(std::string name, const Shape& shape, unsigned first = 0, unsigned count = 256) {
  std::mt19937 random(1);
  std::vector<std::byte> data(*element_count(shape));
  for (std::byte& byte : data) byte = static_cast<std::byte>(first + random() % count);
  return make_dense(std::move(name), shape, DType::u8, make_memory_blob(std::move(data), "memory"));
}

Attributes named_by(Attributes quantization) { return {{"quantization_config", std::move(quantization)}}; }

Model with_parts_of(const Tensor& blocks, const Tensor& scales) {
  Model model;
  model.config_json = named_by({{"quant_method", "mxfp4"}});
  model.add(blocks);
  model.add(scales);
  model.add(make_tensor("norm.weight", {2}, std::vector<float>{1, 2}));
  return model;
}

Model parts() { return with_parts_of(bytes("x_blocks", {2, 4, 3, 16}), bytes("x_scales", {2, 4, 3}, 120, 10)); }

constexpr auto none_stays = [](const Tensor&) { return false; };

void expect_parts(const Model& found) {
  const Model expected = parts();
  ASSERT_EQ(found.size(), expected.size());
  for (const Tensor& other : expected.tensors()) {
    SCOPED_TRACE(other.name);
    ASSERT_NE(found.find(other.name), nullptr);
    const Tensor& tensor = *found.find(other.name);
    EXPECT_EQ(tensor.shape, other.shape);
    EXPECT_EQ(tensor.require("data").dtype, other.require("data").dtype);
    EXPECT_EQ(read_all(*tensor.require("data").blob), read_all(*other.require("data").blob));
  }
}

TEST(Mxfp4, PartsBecomeOneTensorAndComeBack) {
  const Model model = fold_matrices(parts());
  ASSERT_EQ(model.size(), 2U);
  const Tensor& stack = *model.find("x");
  EXPECT_EQ(stack.shape, Shape({2, 4, 96}));
  EXPECT_EQ(stack.layout.name(), kMxLayout);
  // The expected place is computed by hand: row 5 of 8, column 33, is the high half of byte 0 of the row's second
  // block.
  const auto codes = read_all(*parts().find("x_blocks")->require("data").blob);
  const auto scales = read_all(*parts().find("x_scales")->require("data").blob);
  constexpr double kNumbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const unsigned code = std::to_integer<unsigned>(codes[(5 * 3 + 1) * 16]) >> 4U;
  EXPECT_EQ(static_cast<double>(values(stack).at(5 * 96 + 33)),
            std::ldexp(code < 8 ? kNumbers[code] : -kNumbers[code - 8], std::to_integer<int>(scales[5 * 3 + 1]) - 127));
  EXPECT_NE(model.config_json.find("quantization_config"), nullptr);
  EXPECT_TRUE(is_folded(model));
  EXPECT_FALSE(is_folded(parts()));
  expect_parts(*split_quantized_parts(model, none_stays));
  EXPECT_FALSE(split_quantized_parts(model, [](const Tensor&) { return true; }));
}

TEST(Mxfp4, OtherTensorsStay) {
  Model model = fold_matrices(parts());
  model.config_json = {};
  EXPECT_FALSE(split_quantized_parts(model, none_stays));  // config.json names no scheme
}

TEST(Mxfp4, PartsThatDoNotFitAreNamed) {
  struct Case {
    const char* name;
    Tensor blocks;
    Tensor scales;
    const char* problem;
  };
  const Tensor blocks = bytes("x_blocks", {2, 4, 3, 16});
  const Tensor scales = bytes("x_scales", {2, 4, 3});
  const Case cases[] = {
      {"rows", blocks, bytes("x_scales", {2, 3, 3}), "the shape of x_scales is [2, 3, 3], expected [2, 4, 3]"},
      {"dimensions of scales", blocks, bytes("x_scales", {2, 12}), "the shape of x_scales is [2, 12]"},
      {"dimensions of blocks", bytes("x_blocks", {2, 4, 48}), scales, "expected 4 dimensions"},
      {"bytes of a block", bytes("x_blocks", {2, 4, 6, 8}), scales, "blocks of 8 bytes, expected 16"},
      {"type of scales", blocks, make_tensor("x_scales", {2, 4, 3}, std::vector<float>(24)),
       "x_scales is stored as f32, expected u8"},
      {"no scales", blocks, bytes("y", {1}), "the part x_scales is missing"},
      {"no blocks", bytes("y", {1}), scales, "the part x_blocks is missing, which x_scales needs"},
  };
  for (const Case& rule : cases) {
    SCOPED_TRACE(rule.name);
    const Error error = error_of([&] { fold_matrices(with_parts_of(rule.blocks, rule.scales)); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_THAT(error.message(), HasSubstr(rule.problem));
  }
}

// Writing a directory again restores the list of modules only if it is that of the published directories.
TEST(Mxfp4, ModulesThatADirectoryNamesItselfAreALoss) {
  Attributes usual = named_by(make_mxfp4_config());
  EXPECT_FALSE(drop_quantization(usual));
  EXPECT_TRUE(usual.empty());
  Attributes other = named_by({{"quant_method", "mxfp4"}, {"modules_to_not_convert", Value::Array{"lm_head"}}});
  EXPECT_EQ(
      drop_quantization(other),
      "quantization_config of config.json is dropped: a conversion back does not restore its modules_to_not_convert");
}

// Formats without the layout store the parts. Reading their files folds the matrix again.
TEST(Mxfp4, EveryFormatKeepsTheCodes) {
  const support::TemporaryDirectory directory;
  for (const char* const name : {"safetensors", "zt", "zt1"}) {
    SCOPED_TRACE(name);
    const auto path = directory / name;
    const Model stack = fold_matrices(parts());
    const Plan planned = plan(stack, name);
    EXPECT_TRUE(planned.losses.empty());
    write(planned, path);
    const Model model = open(path);
    ASSERT_NE(model.find("x"), nullptr);
    EXPECT_EQ(model.find("x")->layout.name(), kMxLayout);
    expect_parts(*split_quantized_parts(model, none_stays));
    const Model raw = open(path, {.raw = true});
    EXPECT_EQ(raw.find("x") != nullptr, std::string_view(name) == "zt");
  }
}

// A directory stores a matrix in MXFP4 as parts of u8, which must not be cast like numbers.
TEST(Mxfp4, KeepDoesNotChangeParts) {
  const Model stack = fold_matrices(parts());
  const auto keep = [&](const char* format, const char* pattern) {
    return plan(stack, format, {.keep = {{pattern, StoredType{DType::f16}}}});
  };
  for (const char* const pattern : {"x", "x_blocks", "x_*"}) {
    const Error error = error_of([&] { keep("safetensors", pattern); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
    EXPECT_THAT(error.message(),
                HasSubstr("matches only parts of quantized matrices, such as x_blocks, and safetensors "
                          "files hold these matrices by their parts"));
    EXPECT_EQ(error.remedies().size(), 1U);
  }
  const Plan all = keep("safetensors", "*");
  EXPECT_THAT(all.warnings, Contains(Field(&Finding::message, HasSubstr("keep does not change"))));
  EXPECT_THAT(error_of([&] { keep("safetensors", "y"); }).message(), HasSubstr("y"));
  EXPECT_NO_THROW(keep("zt", "x"));
}

}  // namespace
}  // namespace poise
