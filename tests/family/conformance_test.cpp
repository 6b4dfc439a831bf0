// Checks what CONTRIBUTING.md asks of every family, for each row of families.cpp: a row in docs/families.md, the class
// of transformers, and cases in the tests of its computation.
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "family/families.hpp"
#include "support/directories.hpp"

namespace poise {
namespace {

class FamilyConformance : public testing::TestWithParam<const Family*> {
 protected:
  static const Family& family() { return *GetParam(); }
  static std::string type() { return std::string(family().model_type); }
  static bool is_in(std::string_view file, const std::string& text) {
    return support::contents(source_directory() / file).find(text) != std::string::npos;
  }
};

TEST_P(FamilyConformance, HasARowInTheDocs) {
  EXPECT_TRUE(is_in("docs/families.md", fmt::format("\n| `{}` |", type()))) << "docs/families.md needs a row";
}

// Tiny Llama has a format of its own, which transformers does not read.
TEST_P(FamilyConformance, HasAClassOfTransformers) {
  EXPECT_EQ(family().transformers_class.empty(), type() == kTinyLlama);
}

TEST_P(FamilyConformance, HasATitleAndAPlan) {
  EXPECT_FALSE(family().title.empty());
  EXPECT_NE(family().read_config, nullptr);
  EXPECT_NE(family().plan, nullptr);
}

TEST_P(FamilyConformance, HasACaseOfWhatFormatsKeep) {
  const std::string cases = "tests/ops/computation_test.cpp";
  EXPECT_TRUE(type() == kTinyLlama || is_in(cases, fmt::format("{{\"{}\",", type()))) << cases << " needs a case of it";
}

TEST_P(FamilyConformance, HasADirectoryThatIsComparedWithAnIndependentForwardPass) {
  const std::string cases = "tests/runtime/random_directories.py";
  EXPECT_TRUE(type() == kTinyLlama || is_in(cases, fmt::format("\"{}\"", type()))) << cases << " needs a case of it";
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyConformance, testing::ValuesIn(list_families().begin(), list_families().end()),
                         [](const auto& tested) { return std::string(tested.param->model_type); });

}  // namespace
}  // namespace poise
