// Where the writer puts tensors: by the element's width, as the format's own writer does, so that each can be used in
// place.
#include "formats/safetensors/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include <poise/format.hpp>

#include "support/model_files.hpp"

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

}  // namespace
}  // namespace poise
