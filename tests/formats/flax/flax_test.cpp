// Files like those of flax.serialization, laid out by hand from its source and MessagePack's specification.
// against_msgpack.py reads files that Python's msgpack writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/format.hpp>

#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/model_files.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Model opened(const std::string& bytes) { return open(support::source(bytes, "flax_model.msgpack")); }

std::string data_of(const Model& model, const std::string& name) {
  return support::to_string(read_all(*model.find(name)->require("data").blob));
}

std::string text(const std::string& value) { return static_cast<char>(0xa0 | value.size()) + value; }
std::string map(std::initializer_list<std::string> parts) {
  std::string bytes(1, static_cast<char>(0x80 | parts.size() / 2));
  for (const std::string& part : parts) bytes += part;
  return bytes;
}
std::string extension(char type, const std::string& content) {
  return std::string("\xc7") + static_cast<char>(content.size()) + type + content;
}
std::string packed(const std::string& shape, const std::string& type, const std::string& elements) {
  return "\x93" + shape + text(type) + "\xc4" + static_cast<char>(elements.size()) + elements;
}
std::string array(const std::string& shape, const std::string& type, const std::string& elements) {
  return extension(1, packed(shape, type, elements));
}

// {"a": {"kernel": float16 [[1, 2]], "step": 3}, "b": 7 of a type "u1"}, byte by byte.
TEST(Flax, GoldenBytes) {
  const std::string file(
      "\x82"
      "\xa1"
      "a"
      "\x82"
      "\xa6"
      "kernel"
      "\xc7\x12\x01"
      "\x93"
      "\x92\x01\x02"
      "\xa7"
      "float16"
      "\xc4\x04"
      "\x00\x3c\x00\x40"
      "\xa4"
      "step"
      "\x03"
      "\xa1"
      "b"
      "\xd7\x01"
      "\x93"
      "\x90"
      "\xa2"
      "u1"
      "\xc4\x01\x07",
      50);
  const Model model = opened(file);
  EXPECT_EQ(model.origin.format, "flax");
  ASSERT_EQ(model.size(), 1U);
  const Tensor& kernel = model.tensors().front();
  EXPECT_EQ(kernel.name, "a.kernel");
  EXPECT_EQ(kernel.shape, (Shape{1, 2}));
  EXPECT_EQ(kernel.require("data").dtype, DType::f16);
  EXPECT_EQ(data_of(model, "a.kernel"), std::string("\x00\x3c\x00\x40", 4));
  EXPECT_EQ(kernel.require("data").blob->raw_range()->offset, 28U);  // mapped at its offset in the file
  EXPECT_EQ(*model.attributes.find("a.step"), Value(3));
  // "u1" is a type of NumPy, but not the name of one.
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_EQ(model.warnings[0].message, "b is left out: its element type u1 is not known");
}

TEST(Flax, ParametersNeedNoPrefix) {
  const std::string weight = map({text("w"), array("\x91\x01", "int8", "x")});
  const Model model = opened(map({text("params"), weight, text("step"), "\x05"}));
  EXPECT_EQ(model.tensors().front().name, "w");
  EXPECT_EQ(model.tensors().front().name_in_file(), "params.w");
  EXPECT_EQ(*model.attributes.find("flax.root"), Value("params"));
  EXPECT_EQ(*model.attributes.find("step"), Value(5));
  const Model state = opened(map({text("params"), weight, text("batch_stats"), weight}));
  EXPECT_NE(state.find("params.w"), nullptr);
  EXPECT_FALSE(state.find("params.w")->file_name);
  EXPECT_NE(state.find("batch_stats.w"), nullptr);
  EXPECT_EQ(state.attributes.find("flax.root"), nullptr);
}

TEST(Flax, AnArrayAloneIsCalledTensor) { EXPECT_EQ(data_of(opened(array("\x91\x02", "uint8", "ab")), "tensor"), "ab"); }

TEST(Flax, ItemsOfListsAreNumbered) {
  const std::string one = array("\x91\x01", "int8", "x");
  const Model model = opened(map({text("layers"), "\x93" + one + "\xc0" + map({text("w"), one})}));
  EXPECT_NE(model.find("layers.0"), nullptr);
  EXPECT_NE(model.find("layers.2.w"), nullptr);
  EXPECT_EQ(*model.attributes.find("layers.1"), Value());
}

TEST(Flax, ChunksAreJoined) {
  const auto chunk = [](const std::string& elements) {
    return array("\x91" + std::string(1, static_cast<char>(elements.size() / 2)), "int16", elements);
  };
  // The keys may be in any order.
  const Model model = opened(map(
      {text("w"),
       map({text("chunks"), map({text("1"), chunk("efgh"), text("0"), chunk("abcd"), text("2"), chunk("ijkl")}),
            text("__msgpack_chunked_array__"), "\xc3", text("shape"), map({text("0"), "\x02", text("1"), "\x03"})})}));
  const Tensor& tensor = *model.find("w");
  EXPECT_EQ(tensor.shape, (Shape{2, 3}));
  EXPECT_EQ(tensor.require("data").dtype, DType::i16);
  EXPECT_EQ(data_of(model, "w"), "abcdefghijkl");
}

TEST(Flax, ScalarsBecomeAttributes) {
  const Model model = opened(map({text("w"), array("\x91\x01", "int8", "x"), text("rate"),
                                  extension(3, packed("\x90", "bfloat16", "\xc0\x3f")), text("z"),
                                  extension(2, std::string("\x92\xcb\x3f\xf8\0\0\0\0\0\0\xcb\0\0\0\0\0\0\0\0", 19)),
                                  text("time"), std::string("\xd6\xff\0\0\0\1", 6), text("none"), "\xc0"}));
  EXPECT_EQ(*model.attributes.find("rate"), Value(1.5));
  EXPECT_EQ(*model.attributes.find("z"), Value(Value::Array{1.5, 0.0}));
  EXPECT_EQ(*model.attributes.find("none"), Value());
  const Value::Bytes second = {std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1}};
  EXPECT_EQ(*model.attributes.find("time"), Value(Attributes{{"extension", -1}, {"bytes", second}}));
  EXPECT_THAT(model.warnings, IsEmpty());
}

TEST(Flax, IsKnownByItsContent) {
  const std::string file = map({text("w"), array("\x91\x01", "int8", "x")});
  EXPECT_EQ(open(support::source(file, "download")).origin.format, "flax");
  const std::string other = map({text("w"), "\x01"});
  EXPECT_THAT(support::message_of([&] { open(support::source(other, "a.msgpack")); }),
              HasSubstr("expected at least one array, found none: this is not a file of Flax"));
}

// Names and layouts are Flax's, so the directory does not run.
TEST(Flax, ADirectoryAdvisesToOpenTheFile) {
  const support::TemporaryDirectory directory;
  support::put(directory / "config.json", "{}");
  support::put(directory / "flax_model.msgpack", map({text("w"), array("\x91\x01", "int8", "x")}));
  EXPECT_THAT(support::message_of([&] { open(directory.path()); }),
              HasSubstr("there is a flax_model.msgpack; open it by its own path"));
  EXPECT_EQ(open(directory / "flax_model.msgpack").size(), 1U);
}

}  // namespace
}  // namespace poise
