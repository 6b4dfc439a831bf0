// The writer aligns tensors to their elements' width, as the format's own writer does, so that programs can use them in
// place.
#include "formats/safetensors/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include <poise/format.hpp>

#include "formats/ztensor/zt1.hpp"
#include "formats/ztensor/zt2.hpp"
#include "support/model_files.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Safetensors, EveryTensorIsAlignedToItsElements) {
  Model model;
  const auto add = [&](const char* name, DType dtype, std::uint64_t elements, char fill) {
    std::vector<std::byte> data(*packed_bytes(dtype, elements), static_cast<std::byte>(fill));
    model.add(make_dense(name, {elements}, dtype, make_memory_blob(std::move(data), name)));
  };
  add("byte", DType::u8, 1, 'a');
  add("single", DType::f32, 3, 'b');
  add("half", DType::bf16, 1, 'c');
  add("double", DType::f64, 1, 'd');
  add("nibbles", DType::f4_e2m1, 2, 'e');
  add("complex", DType::complex64, 1, 'f');
  add("integer", DType::i32, 1, 'g');
  add("flag", DType::boolean, 1, '\1');
  const std::vector<std::byte> bytes = support::written(model, kSafetensors);
  // The header lists tensors in the order of the data, as some readers expect.
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length % 8, 0U);
  const std::string header(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  EXPECT_THAT(
      header,
      HasSubstr(
          R"({"double":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},"complex":{"dtype":"C64","shape":[1],"data_offsets":[8,16]},)"
          R"("single":{"dtype":"F32","shape":[3],"data_offsets":[16,28]},"integer":{"dtype":"I32","shape":[1],"data_offsets":[28,32]},)"
          R"("half":{"dtype":"BF16","shape":[1],"data_offsets":[32,34]},"byte":{"dtype":"U8","shape":[1],"data_offsets":[34,35]},)"
          R"("nibbles":{"dtype":"F4","shape":[2],"data_offsets":[35,36]},"flag":{"dtype":"BOOL","shape":[1],"data_offsets":[36,37]}})"));
  const std::string data(reinterpret_cast<const char*>(bytes.data()) + 8 + length, bytes.size() - 8 - length);
  EXPECT_EQ(data, std::string(8, 'd') + std::string(8, 'f') + std::string(12, 'b') + std::string(4, 'g') + "cc" + "a" +
                      "e" + "\1");
  const Model reread = support::read(bytes, "test.safetensors");
  for (const Tensor& tensor : reread.tensors()) {
    const auto at = tensor.require("data").blob->stored();
    const unsigned width = std::max(1U, info(tensor.require("data").dtype).bits / 8U);
    EXPECT_EQ(at->offset % width, 0U) << tensor.name;
    EXPECT_EQ(read_all(*tensor.require("data").blob), read_all(*model.find(tensor.name)->require("data").blob));
  }
}

std::vector<std::byte> file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  text += header + data;
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Source: the library's own test (test_whitespace_leading_padded_header). White space of JSON aligns the object.
TEST(Safetensors, ReadsWhiteSpaceBeforeTheObject) {
  const std::string object = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  for (const std::string& space : {std::string(" "), std::string("\t\n\r "), std::string(40'000, ' ')}) {
    for (const char* path : {"test.safetensors", "without-extension"}) {
      const Model model = support::read(file_of(space + object + "  ", "xy"), path);
      ASSERT_EQ(model.size(), 1U);
      EXPECT_EQ(model.origin.format, "safetensors");
      EXPECT_EQ(read_all(*model.find("a")->require("data").blob), (std::vector{std::byte{'x'}, std::byte{'y'}}));
    }
  }
}

// Computed by hand from the paper that the library cites (arXiv 2206.02915): 4 and 5 bits of exponent with biases of 8
// and 16.
TEST(Safetensors, ReadsFnuzNumbers) {
  const Model model = support::read(file_of(R"({"a":{"dtype":"F8_E4M3FNUZ","shape":[4],"data_offsets":[0,4]},)"
                                            R"("b":{"dtype":"F8_E5M2FNUZ","shape":[4],"data_offsets":[4,8]}})",
                                            std::string("\x01\x40\x7f\xff\x01\x40\x7f\xff")),
                                    "test.safetensors");
  const auto numbers = [&](const char* name) {
    std::vector<float> result(4);
    make_dense_blob(*model.find(name), DType::f32)->read(0, std::as_writable_bytes(std::span(result)));
    return result;
  };
  EXPECT_THAT(numbers("a"), ElementsAre(0x1p-10F, 1, 240, -240));
  EXPECT_THAT(numbers("b"), ElementsAre(0x1p-17F, 1, 57344, -57344));
  const Model reread = support::read(support::written(model, kSafetensors), "test.safetensors");
  EXPECT_EQ(reread.find("a")->require("data").dtype, DType::f8_e4m3fnuz);
  EXPECT_EQ(reread.find("b")->require("data").dtype, DType::f8_e5m2fnuz);
}

// The sizes are the library's: four elements take three bytes. Their order in the bytes is not documented, so they are
// carried.
TEST(Safetensors, CarriesElementsOfSixBits) {
  const Model model = support::read(file_of(R"({"a":{"dtype":"F6_E2M3","shape":[2,4],"data_offsets":[0,6]},)"
                                            R"("b":{"dtype":"F6_E3M2","shape":[4],"data_offsets":[6,9]},)"
                                            R"("c":{"dtype":"F6_E3M2","shape":[0],"data_offsets":[9,9]}})",
                                            "123456789"),
                                    "test.safetensors");
  for (const Format* format : {&kSafetensors, &kZtensor1, &kZtensor2}) {
    const Model reread = support::read(support::written(model, *format), "test");
    for (const auto& [name, type] : {std::pair("a", "F6_E2M3"), {"b", "F6_E3M2"}, {"c", "F6_E3M2"}}) {
      const Part& data = reread.find(name)->require("data");
      EXPECT_EQ(reread.find(name)->shape, model.find(name)->shape);
      EXPECT_EQ(data.dtype, DType::unknown);
      EXPECT_EQ(name_unknown_type(data.type_name()), type);
      EXPECT_EQ(read_all(*data.blob), read_all(*model.find(name)->require("data").blob));
      EXPECT_FALSE(has_float_elements(*reread.find(name)));
    }
    const std::vector<std::byte> again = support::written(reread, kSafetensors);
    EXPECT_EQ(again, support::written(model, kSafetensors));
  }
}

TEST(Safetensors, ListsTextsThatAreNotUtf8AsLosses) {
  Model model;
  model.attributes = {{"good", "\xc3\xa4"}, {"bad", "a\xff"}};
  EXPECT_THAT(prepare_file(model, kSafetensors, {}).losses,
              ElementsAre("safetensors cannot hold texts that are not UTF-8: their wrong bytes become U+FFFD in bad"));
}

}  // namespace
}  // namespace poise
