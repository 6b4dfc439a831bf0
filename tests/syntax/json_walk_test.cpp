// A walk through a text gives the same values as its tree, and refuses the same texts, however the caller reads each
// value.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "syntax/json.hpp"

namespace poise {
namespace {

using testing::HasSubstr;

const std::string kName = "test.json";

class Random {
 public:
  explicit Random(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return random_() % limit; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  template <typename Items>
  const auto& of(const Items& items) {
    return items[below(items.size())];
  }

 private:
  std::mt19937 random_;
};

// Makes random texts: nested containers, mostly small, sometimes deeper than allowed or with a repeated key.
class RandomText {
 public:
  explicit RandomText(Random& random) : random_(random) {}

  std::string object(std::size_t depth) {
    static constexpr std::array<std::string_view, 4> kKeys = {"key", "k\\u0065y", "\\\\", ""};
    const std::size_t count = random_.below(random_.one_in(8) ? 20 : 4);
    std::string text = "{";
    for (std::size_t i = 0; i < count; ++i) {
      const std::string key = fmt::format("\"{}{}\"", random_.of(kKeys), random_.one_in(50) ? 0 : i);
      text += fmt::format("{}{}{}{}:{}", i == 0 ? "" : ",", space(), key, space(), value(depth + 1));
    }
    return text + space() + "}";
  }

 private:
  std::string list(std::size_t depth) {
    const std::size_t count = random_.below(4);
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + value(depth + 1);
    return text + space() + "]";
  }

  std::string value(std::size_t depth) { return space() + bare_value(depth) + space(); }

  std::string bare_value(std::size_t depth) {
    static constexpr std::array<std::string_view, 15> kScalars = {"0",
                                                                  "-0",
                                                                  "7",
                                                                  "18446744073709551615",
                                                                  "18446744073709551616",
                                                                  "-3",
                                                                  "1.5e3",
                                                                  "1e400",
                                                                  "null",
                                                                  "true",
                                                                  "false",
                                                                  "\"text\"",
                                                                  "\"\\u00e9\\n\"",
                                                                  "\"\\\"\"",
                                                                  "\"a:b,[{}]\\\\\""};
    if (random_.one_in(100)) {
      const std::size_t nesting = random_.below(70);
      return std::string(nesting, '[') + std::string(nesting, ']');
    }
    if (depth > 7 || random_.one_in(2)) return std::string(random_.one_in(10) ? "{}" : random_.of(kScalars));
    return random_.one_in(2) ? list(depth) : object(depth);
  }

  std::string space() {
    static constexpr std::array<std::string_view, 5> kSpaces = {"", "", "", " ", "\n\t "};
    return std::string(random_.of(kSpaces));
  }

  Random& random_;
};

// Changes, removes or inserts a byte at one place, or ends the text there.
void damage(std::string& text, Random& random) {
  constexpr std::string_view kBytes("[]{}:,\"\\ 0-e.tn\x01\x80\0", 18);
  const std::size_t place = random.below(text.size());
  switch (random.below(4)) {
    case 0: text[place] = random.of(kBytes); break;
    case 1: text.erase(place, 1 + random.below(3)); break;
    case 2: text.insert(place, 1, random.of(kBytes)); break;
    default: text.resize(place); break;
  }
}

// Reads the values of a text in random ways, and compares them with the tree, if there is one.
class Walker {
 public:
  explicit Walker(Random& random) : random_(random) {}

  void walk(const std::string& text, const Value* tree) {
    Object object(tree);
    walk_json_object(JsonText(text), kName, 0,
                     [&](std::string_view key, JsonValue& value) { take_member(object, key, value); });
    object.expect_end();
  }

 private:
  struct Object {
    explicit Object(const Value* tree) : expected(tree == nullptr ? nullptr : tree->get_if<Attributes>()) {}
    void expect_end() const {
      if (expected != nullptr) {
        EXPECT_EQ(keys.size(), expected->size());
      }
    }

    const Attributes* expected;
    std::set<std::string, std::less<>> keys;
  };

  void take_member(Object& object, std::string_view key, JsonValue& value) {
    if (!object.keys.emplace(key).second) fail_repeated_key(key, kName, value.position());
    const Value* expected = nullptr;
    if (object.expected != nullptr) {
      ASSERT_LE(object.keys.size(), object.expected->size());
      const auto& entry = object.expected->begin()[static_cast<std::ptrdiff_t>(object.keys.size() - 1)];
      EXPECT_EQ(key, entry.first);
      expected = &entry.second;
    }
    take(value, expected);
  }

  void take(JsonValue& value, const Value* expected) {
    if (random_.one_in(8)) return;
    while (!asked(value, expected)) {
    }
  }

  // Returns false if the value is of another kind.
  bool asked(JsonValue& value, const Value* expected) {
    switch (random_.below(9)) {
      case 0: {
        const Value tree = value.read_tree();
        if (expected != nullptr) {
          EXPECT_EQ(tree, *expected);
        }
        return true;
      }
      case 1: {
        const auto text = value.read_text();
        return expect_scalar<std::string>(text, expected);
      }
      case 2: return expect_scalar<std::uint64_t>(value.read_unsigned(), expected);
      case 3: {
        Object object(expected);
        const auto visit = [&](std::string_view key, JsonValue& item) { take_member(object, key, item); };
        const bool was_object = random_.one_in(2) ? value.visit_members(visit) : value.visit_members_unchecked(visit);
        if (expected != nullptr) {
          EXPECT_EQ(was_object, object.expected != nullptr);
        }
        if (was_object) object.expect_end();
        return was_object;
      }
      default: return expect_items(value, expected);
    }
  }

  template <typename Kept, typename Found>
  static bool expect_scalar(const std::optional<Found>& found, const Value* expected) {
    if (expected != nullptr) {
      const Kept* const kept = expected->get_if<Kept>();
      EXPECT_EQ(found.has_value(), kept != nullptr) << to_json(*expected);
      if (found && kept != nullptr) {
        EXPECT_EQ(*found, *kept);
      }
    }
    return found.has_value();
  }

  bool expect_items(JsonValue& value, const Value* expected) {
    const Value::Array* const items = expected == nullptr ? nullptr : expected->get_if<Value::Array>();
    std::size_t count = 0;
    const bool was_list = value.visit_items([&](JsonValue& item) {
      if (items != nullptr) {
        ASSERT_LT(count, items->size());
      }
      take(item, items == nullptr ? nullptr : &(*items)[count]);
      ++count;
    });
    if (expected != nullptr) {
      EXPECT_EQ(was_list, items != nullptr);
    }
    if (items != nullptr) {
      EXPECT_EQ(count, items->size());
    }
    return was_list;
  }

  Random& random_;
};

// Each text is walked in a few ways.
void expect_walks_as_tree(const std::string& text, Random& random) {
  SCOPED_TRACE(text);
  Value tree;
  const std::string refusal = support::message_of([&] { tree = parse_json(text, kName); });
  for (int way = 0; way < 3; ++way) {
    const std::string walked =
        support::message_of([&] { Walker(random).walk(text, refusal.empty() ? &tree : nullptr); });
    const bool object = text.find_first_not_of(" \t\n\r") == text.find('{') && text.find('{') != std::string::npos;
    if (object) {
      ASSERT_EQ(walked, refusal);
    } else {
      ASSERT_NE(walked, "");
    }
  }
}

TEST(JsonWalk, GivesTheValuesOfTheTree) {
  Random random(1);
  for (int i = 0; i < 3000 && !testing::Test::HasFailure(); ++i)
    expect_walks_as_tree(RandomText(random).object(0), random);
}

TEST(JsonWalk, RefusesTheTextsThatTheTreeRefuses) {
  Random random(2);
  for (int i = 0; i < 3000 && !testing::Test::HasFailure(); ++i) {
    std::string text = RandomText(random).object(0);
    damage(text, random);
    expect_walks_as_tree(text, random);
  }
}

// Each list alone fits the text's budget of a million values, but both together do not. Skipped values cost nothing.
TEST(JsonWalk, CountsTheValuesOfAllTreesTogether) {
  std::string list = "[0";
  for (int i = 0; i < 700000; ++i) list += ",0";
  list += "]";
  const std::string text = fmt::format(R"({{"a": {0}, "b": {0}, "c": {0}}})", list);
  std::vector<std::string_view> wanted;
  const auto walk = [&] {
    walk_json_object(JsonText(text), kName, 0, [&](std::string_view key, JsonValue& value) {
      if (std::ranges::find(wanted, key) != wanted.end()) value.read_tree();
    });
  };
  EXPECT_EQ(support::message_of(walk), "");
  wanted = {"c"};
  EXPECT_EQ(support::message_of(walk), "");
  wanted = {"a", "c"};
  EXPECT_THAT(support::message_of(walk), HasSubstr("more values than a text of this size may hold"));
  EXPECT_THAT(support::message_of([&] { parse_json(text, kName); }),
              HasSubstr("more values than a text of this size may hold"));
}

// A list that is walked is not a level of the trees inside it.
TEST(JsonWalk, ReadsTreesInsideOfWalkedLists) {
  std::vector<Value> found;
  walk_json_object(JsonText(R"({"a": [[["b", [1, {"c": {}}]], []]]})"), kName, 0,
                   [&](std::string_view, JsonValue& value) {
                     value.visit_items([&](JsonValue& outer) {
                       outer.visit_items([&](JsonValue& inner) {
                         inner.visit_items([&](JsonValue& item) { found.push_back(item.read_tree()); });
                       });
                     });
                   });
  EXPECT_EQ(found, (std::vector<Value>{"b", Value::Array{1, Attributes{{"c", Attributes()}}}}));
}

}  // namespace
}  // namespace poise
