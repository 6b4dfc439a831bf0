// The expected values are those of YAML 1.2.
#include "formats/front_matter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace poise {
namespace {

std::string license(const std::string& yaml) {
  return FrontMatter("---\n" + yaml + "\n---\n# Title\n").find_value("license");
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
}

TEST(FrontMatter, Nothing) {
  for (const char* yaml : {"license:", "license: ''", "license: ~", "license: null", "license: # none", "License: mit",
                           "a:\n  license: mit", "licenses: mit"})
    EXPECT_EQ(license(yaml), "") << yaml;
  EXPECT_EQ(FrontMatter("---\nlicense: mit\n").find_value("license"), "") << "it does not end";
  EXPECT_EQ(FrontMatter("\n---\nlicense: mit\n---\n").find_value("license"), "") << "it does not begin the file";
}

TEST(FrontMatter, Lists) {
  EXPECT_EQ(license("license:\n- mit\n- bsd"), "mit");
  EXPECT_EQ(license("license:\n    - 'mit'"), "mit");
  EXPECT_EQ(license("license: [mit, bsd]"), "mit");
  EXPECT_EQ(license("license: [\"a, b\", bsd]"), "a, b");
  EXPECT_EQ(license("license: [\n  mit,\n  bsd\n]"), "mit");
  EXPECT_EQ(license("license: []\nmit: 1"), "");
}

TEST(FrontMatter, AllItems) {
  const auto items = [](const std::string& yaml) {
    return FrontMatter("---\n" + yaml + "\n---\n").find_values("tags");
  };
  EXPECT_THAT(items("tags:\n- a\n# none\n- 'b: c'\n\n-  d # e\nother:\n- f"), testing::ElementsAre("a", "b: c", "d"));
  EXPECT_THAT(items("tags:\n  - a\n  - name: b\n    url: c\n  - d\nother: 1"), testing::ElementsAre("a", "d"));
  EXPECT_THAT(items("tags: [a, \"b, c]\",\n  d]\nother: [e]"), testing::ElementsAre("a", "b, c]", "d"));
  EXPECT_THAT(items("tags: a"), testing::ElementsAre("a"));
  EXPECT_THAT(items("tags: [a, b"), testing::IsEmpty());
  EXPECT_THAT(items("tags:"), testing::IsEmpty());
}

TEST(FrontMatter, Blocks) {
  EXPECT_EQ(license("license: >\n  mit\n  or bsd\nother: 1"), "mit or bsd");
  EXPECT_EQ(license("license: |-\n  mit\n\n  bsd"), "mit\n\nbsd");
  EXPECT_EQ(license("license: >\nother: 1"), "");
}

// A README whose front matter is not YAML has none, and states why, with the line of the file.
TEST(FrontMatter, ThatIsNotYaml) {
  const auto problem = [](const std::string& yaml) {
    return FrontMatter("---\n" + yaml + "\n---\n# Title\n").problem();
  };
  EXPECT_EQ(problem("license: mit"), "");
  EXPECT_EQ(FrontMatter("# Title\nlicense: [").problem(), "");
  EXPECT_EQ(problem("license: mit\nlicense: bsd"), "line 3: the key \"license\" appears twice");
  EXPECT_THAT(problem("license: mit\ntags: [a, b"), testing::StartsWith("line "));
  EXPECT_EQ(license("license: mit\ntags: [a, b"), "");
}

}  // namespace
}  // namespace poise
