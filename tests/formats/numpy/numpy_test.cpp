// Tests of NumPy's files that need no NumPy. against_numpy.py compares reading and writing with NumPy itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/format.hpp>
#include <poise/values.hpp>

#include "formats/registry.hpp"
#include "support/model_files.hpp"
#include "support/zip_file.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string array_file(std::string dict, const std::string& data) {
  return "\x93NUMPY\1" + std::string(1, '\0') + support::le(dict.size(), 2) + dict + data;
}

// numpy.asfortranarray([[0, 1, 2], [3, 4, 5]], dtype=">i2")
TEST(Numpy, FortranOrderAndBigEndianAreReadAsRows) {
  const Model model = open(support::source(array_file("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }",
                                                      std::string("\0\0\0\3\0\1\0\4\0\2\0\5", 12)),
                                           "a.npy"));
  const Tensor& tensor = *model.find("a");
  EXPECT_EQ(tensor.shape, (Shape{2, 3}));
  EXPECT_EQ(support::to_string(read_all(*tensor.require("data").blob)), std::string("\0\0\1\0\2\0\3\0\4\0\5\0", 12));
}

TEST(Numpy, TextsBecomeAttributes) {
  const std::string names =
      array_file("{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }",
                 support::le('a', 4) + support::le(0xe9, 4) + support::le('b', 4) + support::le(0, 4));
  const std::string kind =
      array_file("{'descr': '|S4', 'fortran_order': False, 'shape': (), }", std::string("net\0", 4));
  const Model model =
      open(support::source(support::zip_file({{"names.npy", names}, {"kind.npy", kind}}).bytes(), "a.npz"));
  EXPECT_EQ(*model.attributes.find("names"), Value(Value::Array{"a\xc3\xa9", "b"}));
  EXPECT_EQ(*model.attributes.find("kind"), Value("net"));
  EXPECT_THAT(model.warnings, testing::IsEmpty());
}

Model two_arrays() {
  Model model;
  for (const char* name : {"a", "b/c"})
    model.add(make_dense(name, {3}, DType::f32, make_memory_blob(std::vector<std::byte>(12, std::byte{1}), name)));
  return model;
}

TEST(Numpy, ElementsAreAligned) {
  const auto file = support::written(two_arrays(), kNpz);
  const Model reread = support::read(file, "a.npz");
  for (const Tensor& tensor : reread.tensors()) EXPECT_EQ(tensor.require("data").blob->raw_range()->offset % 64, 0U);
  MemoryOutput output("a.npz");
  const Model model = two_arrays();
  EXPECT_EQ(prepare_file(model, kNpz, {}).plan().bytes, file.size());
}

TEST(Numpy, AnArrayAloneHoldsOneTensorWithoutItsName) {
  try {
    support::written(two_arrays(), kNpy);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("holds one array, the model has 2 tensors"));
    EXPECT_EQ(error.remedies().back(), (Remedy{.kind = Remedy::Kind::only, .tensor = "a"}));
    EXPECT_EQ(error.remedies().at(0).value, "npz");
  }
  Model model;
  model.add(make_dense("w", {}, DType::u8, make_memory_blob({std::byte{7}}, "w")));
  EXPECT_THAT(losses_of(model, kNpy, {}),
              ElementsAre(HasSubstr("an .npy file holds an array alone, without the name w")));
  const Model reread = support::read(support::written(model, kNpy), "dir/scalar.npy");
  EXPECT_EQ(reread.tensors().front().name, "scalar");
}

// np.dtype("f4") and np.dtype("|f4") are np.dtype("<f4") on a little-endian machine.
TEST(Numpy, ElementsWithoutAByteOrderAreLittleEndian) {
  Model model;
  model.add(make_tensor("w", {2}, std::vector<float>{1, 2}));
  const std::vector<std::byte> bytes = support::written(model, kNpy);
  const std::string file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const std::string_view descr : {"'f4' ", "'=f4'", "'|f4'"}) {
    std::string other = file;
    other.replace(other.find("'<f4'"), descr.size(), descr);
    const Model reread = open(support::source(other, "w.npy"));
    EXPECT_EQ(values(reread.tensors().front()).at(1), 2.0F);
  }
}

TEST(Numpy, NamesThatArchivesCannotHaveAreRefused) {
  Model model;
  model.add(make_dense("../w", {1}, DType::u8, make_memory_blob({std::byte{7}}, "w")));
  EXPECT_THROW(support::written(model, kNpz), Error);
}

}  // namespace
}  // namespace poise
