// The expected values are those of YAML 1.2.
#include "formats/huggingface/front_matter.hpp"

#include <gtest/gtest.h>

namespace poise {
namespace {

std::string license(const std::string& yaml) {
  return front_matter_value("---\n" + yaml + "\n---\n# Title\n", "license");
}

TEST(FrontMatter, Scalars) {
  EXPECT_EQ(license("license: mit"), "mit");
  EXPECT_EQ(license("license:\tmit   # of the weights"), "mit");
  EXPECT_EQ(license("license: a#b"), "a#b");
  EXPECT_EQ(license("license : mit\r"), "mit");
  EXPECT_EQ(license(R"("license": mit)"), "mit");
  EXPECT_EQ(license(R"(license: "a: b" # c)"), "a: b");
  EXPECT_EQ(license(R"(license: "say \"a\"")"), "say \"a\"");
  EXPECT_EQ(license("license: 'it''s'"), "it's");
  EXPECT_EQ(license("other: 1\nlicense: mit\nlicense: bsd"), "mit");
}

TEST(FrontMatter, Nothing) {
  for (const char* yaml : {"license:", "license: ''", "license: ~", "license: null", "license: # none", "License: mit",
                           "a:\n  license: mit", "licenses: mit"})
    EXPECT_EQ(license(yaml), "") << yaml;
  EXPECT_EQ(front_matter_value("---\nlicense: mit\n", "license"), "") << "it does not end";
  EXPECT_EQ(front_matter_value("\n---\nlicense: mit\n---\n", "license"), "") << "it does not begin the file";
}

TEST(FrontMatter, Lists) {
  EXPECT_EQ(license("license:\n- mit\n- bsd"), "mit");
  EXPECT_EQ(license("license:\n    - 'mit'"), "mit");
  EXPECT_EQ(license("license: [mit, bsd]"), "mit");
  EXPECT_EQ(license("license: [\"a, b\", bsd]"), "a, b");
  EXPECT_EQ(license("license: [\n  mit,\n  bsd\n]"), "mit");
  EXPECT_EQ(license("license: []\nmit: 1"), "");
}

TEST(FrontMatter, Blocks) {
  EXPECT_EQ(license("license: >\n  mit\n  or bsd\nother: 1"), "mit or bsd");
  EXPECT_EQ(license("license: |-\n  mit\n\n  bsd"), "mit\nbsd");
  EXPECT_EQ(license("license: >\nother: 1"), "");
}

}  // namespace
}  // namespace poise
