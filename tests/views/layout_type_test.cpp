#include "views/layout_type.hpp"

#include <set>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "codec/block_type.hpp"
#include "support/directories.hpp"
#include "tensor/block_layout.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

Tensor bytes(std::size_t count) {
  return make_dense("x", {count}, DType::u8, make_memory_blob(std::vector<std::byte>(count), "x"));
}

TEST(LayoutType, EveryRowHasTheFunctionsThatConversionsCall) {
  std::set<std::string_view> names;
  for (const LayoutType* type : list_layout_types()) {
    SCOPED_TRACE(std::string(type->name));
    EXPECT_TRUE(names.insert(type->name).second);
    EXPECT_NE(type->check, nullptr);
    EXPECT_NE(type->has_float_elements, nullptr);
    EXPECT_NE(type->elements, nullptr);
    // Affine codes are described by the formats that have them.
    EXPECT_EQ(type->read == nullptr, type == &layouts::affine);
  }
}

TEST(LayoutType, EveryRowIsDocumented) {
  const std::string page = support::contents(source_directory() / "docs/formats/ztensor.md");
  for (const LayoutType* type : list_layout_types()) {
    if (type == &layouts::blocks || type == &layouts::affine) continue;  // under names of their types; in ALT
    EXPECT_NE(page.find(fmt::format("`{}`", type->name)), std::string::npos) << type->name;
  }
}

TEST(LayoutType, UnknownNamesAreCarried) {
  Tensor tensor = bytes(32);
  for (const std::string name : {"zt.foo/1", "affine", "blocks", "other", "gguf.q4_9/1"}) {
    SCOPED_TRACE(name);
    tensor.layout = read_layout(tensor, name);
    EXPECT_EQ(tensor.layout.name(), name);
    EXPECT_EQ(&find_layout_type(tensor.layout), &layouts::other);
    EXPECT_FALSE(has_float_elements(tensor));
    check_parts(tensor);  // unknown layouts have no checks
  }
}

TEST(LayoutType, ANameLeadsToItsRow) {
  Tensor tensor = bytes(34);
  tensor.shape = {32};
  tensor.layout = read_layout(tensor, "gguf.q8_0/1");
  EXPECT_EQ(&find_layout_type(tensor.layout), &layouts::blocks);
  EXPECT_EQ(describe_stored_type(tensor), "q8_0");
  EXPECT_EQ(find_element_type(tensor), DType::f32);
  tensor.layout = read_layout(tensor, "sparse_coo");
  EXPECT_EQ(&find_layout_type(tensor.layout), &layouts::sparse_coo);
  EXPECT_THROW(check_parts(tensor), Error);
}

TEST(LayoutType, StoredTypesHaveTheLayoutThatTheyAreStoredIn) {
  EXPECT_EQ(&find_layout_type(*stored_type_from_name("f16")), &layouts::dense);
  EXPECT_EQ(&find_layout_type(*stored_type_from_name("qint4:range")), &layouts::affine);
  EXPECT_EQ(&find_layout_type(*stored_type_from_name("group4:64")), &layouts::groups);
  EXPECT_EQ(&find_layout_type(*stored_type_from_name("q4_k")), &layouts::blocks);
}

}  // namespace
}  // namespace poise
