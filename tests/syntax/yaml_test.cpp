#include "syntax/yaml.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

namespace poise {
namespace {

using testing::HasSubstr;
using Kind = YamlNode::Kind;

std::string find_error(const std::string& text) {
  try {
    parse_yaml(text, "recipe.yaml");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    return error.what();
  }
  return "no error";
}

std::string repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Yaml, MakesATreeWithLines) {
  const YamlNode root = parse_yaml("a: 1\nb:\n  - x\n  - 'true'\n  - {c: ~}\n", "");
  ASSERT_EQ(root.kind, Kind::map);
  EXPECT_EQ(root.find("a")->text, "1");
  EXPECT_TRUE(root.find("a")->is_plain);
  const YamlNode& list = *root.find("b");
  ASSERT_EQ(list.kind, Kind::list);
  ASSERT_EQ(list.items.size(), 3U);
  EXPECT_EQ(list.items[1].text, "true");
  EXPECT_FALSE(list.items[1].is_plain);
  EXPECT_EQ(list.items[1].line, 4U);
  EXPECT_EQ(list.items[2].find("c")->kind, Kind::null);
  EXPECT_EQ(root.find("c"), nullptr);
  EXPECT_EQ(parse_yaml("", "").kind, Kind::null);
  EXPECT_EQ(parse_yaml("# none\n", "").kind, Kind::null);
}

TEST(Yaml, FollowsAliases) {
  const YamlNode root = parse_yaml("a: &x [1, 2]\nb: *x\n", "");
  EXPECT_EQ(root.find("b")->items.at(1).text, "2");
  EXPECT_THAT(find_error("a: &x [*x]\n"), HasSubstr("recipe.yaml: line 1: an alias stands inside"));
  EXPECT_THAT(find_error("a: *x\n"), HasSubstr("recipe.yaml: line 1: "));
}

TEST(Yaml, BoundsAliases) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string name = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + name + repeat(", " + name, 8) + "]\n";
  }
  EXPECT_THAT(find_error(text), HasSubstr("there are more than 100000 values"));
  std::string deep = "a0: &a0 [x]\n";
  for (int i = 1; i < 40; ++i)
    deep += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  EXPECT_THAT(find_error(deep), HasSubstr("lists and maps are more than 32 deep"));
}

TEST(Yaml, BoundsDepthAndSize) {
  EXPECT_THAT(find_error(repeat("[", 100'000)), HasSubstr("line 1: lists and maps are more than 32 deep"));
  EXPECT_THAT(find_error(repeat("{a: ", 100'000)), HasSubstr("deep"));
  EXPECT_THAT(find_error(repeat("- ", 100'000)), HasSubstr("deep"));
  EXPECT_THAT(find_error("[" + repeat("1,", 200'000) + "1]"), HasSubstr("there are more than 100000 values"));
  EXPECT_THAT(find_error(std::string(kMostYamlBytes + 1, ' ')), HasSubstr("at most 1048576 are read as YAML"));
}

TEST(Yaml, NamesTheLineOfAFault) {
  EXPECT_THAT(find_error("a: 1\nb: [1\n"), HasSubstr("recipe.yaml: line "));
  EXPECT_THAT(find_error("a: 1\na: 2\n"), HasSubstr("line 2: the key \"a\" appears twice"));
  EXPECT_THAT(find_error("a: 1\n[b]: 2\n"), HasSubstr("line 2: a key of a map is not text"));
  EXPECT_THAT(find_error("a: 1\n---\nb: 2\n"), HasSubstr("there are several documents"));
}

}  // namespace
}  // namespace poise
