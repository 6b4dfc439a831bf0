// JSON text of values, compact and indented, as RFC 8259 has it; the expected text is written by hand.
#include <poise/value.hpp>

#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

namespace poise {
namespace {

TEST(ValueJson, WritesEveryType) {
  const Value::Bytes bytes = {std::byte{0x00}, std::byte{0xab}};
  const Value::Pairs pairs = {{Value(1), Value("one")}, {Value(nullptr), Value()}};
  const Attributes map{{"null", Value()},
                       {"true", true},
                       {"minus", -3},
                       {"large", std::numeric_limits<std::uint64_t>::max()},
                       {"half", 0.5},
                       {"text", "a\"b"},
                       {"bytes", bytes},
                       {"array", Value::Array{1, "x"}},
                       {"map", Attributes{{"", 1}}},
                       {"pairs", pairs},
                       {"nothing", Value::Array{}},
                       {"empty", Attributes{}}};
  EXPECT_EQ(
      to_json(map),
      R"({"null":null,"true":true,"minus":-3,"large":18446744073709551615,"half":0.5,"text":"a\"b","bytes":"00ab","array":[1,"x"],)"
      R"("map":{"":1},"pairs":[[1,"one"],[null,null]],"nothing":[],"empty":{}})");
}

TEST(ValueJson, Indents) {
  const Attributes map{{"a", Value::Array{1, Attributes{{"b", Value::Array{}}}}}, {"c", Attributes{}}};
  EXPECT_EQ(to_json(map, 2),
            "{\n"
            "  \"a\": [\n"
            "    1,\n"
            "    {\n"
            "      \"b\": []\n"
            "    }\n"
            "  ],\n"
            "  \"c\": {}\n"
            "}");
  EXPECT_EQ(to_json(Value(7), 2), "7");
}

TEST(ValueJson, ReplacesInfinityAndInvalidText) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(to_json(Value::Array{kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}), "[null,null,null]");
  EXPECT_EQ(to_json(Value("a\xff"
                          "b\n\x01")),
            "\"a\xef\xbf\xbd"
            "b\\n\\u0001\"");
}

TEST(ValueJson, TheNumberOfValuesIsBounded) {
  const auto zeros = [](std::size_t count) {
    std::string text = "[0";
    for (std::size_t i = 1; i < count; ++i) text += ",0";
    return text + "]";
  };
  EXPECT_NO_THROW(parse_json(zeros(900'000), "test", 0));
  EXPECT_THROW(parse_json(zeros(2'000'000), "test", 0), Error);
}

TEST(ValueJson, RepeatedKeysAreFoundAtAnyDistance) {
  const std::string key = "a" + std::string(100, 'b');  // too long to be kept in place
  std::string text = "{\"\\u0061" + key.substr(1) + "\":0";
  for (int i = 0; i < 20; ++i)
    text += fmt::format(",\"{}\":{}{}{}", i, std::string(static_cast<std::size_t>(i) + 1, '['), i,
                        std::string(static_cast<std::size_t>(i) + 1, ']'));
  EXPECT_NO_THROW(parse_json(text + "}", "test"));
  EXPECT_THROW(parse_json(text + ",\"" + key + "\":1}", "test"), Error);
  EXPECT_THROW(parse_json(text + ",\"\\u0061" + key.substr(1) + "\":1}", "test"), Error);
}

TEST(ValueJson, ErrorsHaveTheirPlace) {
  const auto place = [](std::string_view text) -> std::uint64_t {
    try {
      parse_json(text, "test", 1000);
    } catch (const Error& error) {
      return error.offset().value_or(0);
    }
    return 0;
  };
  EXPECT_EQ(place(R"({"a":1,"b":{},"a":2})"), 1014U);                // the second "a"
  EXPECT_EQ(place(R"({"x":{"b\\":1 , "b\u005c":[]}})"), 1016U);      // the same key in another spelling
  EXPECT_EQ(place(R"({"\"":0,"\\\"":0,"\u005c\u0022":0})"), 1017U);  // keys that end with quotes
  EXPECT_EQ(place("[1,\n  \1]"), 1006U);
  EXPECT_EQ(place(std::string_view("[\0]", 3)), 1001U);
}

// Numbers as RFC 8259 spells them; the expected ones are C++ literals.
TEST(ValueJson, ReadsNumbersOfAnyLength) {
  const auto read = [](std::string_view text) { return parse_json(text, "test"); };
  EXPECT_EQ(read("-0"), Value(0));
  EXPECT_EQ(read("18446744073709551615"), Value(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_EQ(read("-9223372036854775808"), Value(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(read("18446744073709551616"), Value(18446744073709551616.0));
  EXPECT_EQ(read("-9223372036854775809"), Value(-9223372036854775809.0));
  EXPECT_EQ(read("18446744073709551615.5"), Value(18446744073709551615.5));
  EXPECT_EQ(read("0.12345678901234567890123"), Value(0.12345678901234567890123));
  EXPECT_EQ(read("[1E+2 , 2e-2]"), Value(Value::Array{100.0, 0.02}));
  EXPECT_EQ(read("1e-999"), Value(0.0));
  EXPECT_EQ(read("12.5e-999"), Value(0.0));
  EXPECT_EQ(read("0.005e-330"), Value(0.0));
  EXPECT_EQ(read("0." + std::string(400, '0') + "1"), Value(0.0));
  EXPECT_EQ(read("0." + std::string(400, '0') + "1e20"), Value(0.0));
  EXPECT_EQ(read("0e99999999999999999999"), Value(0.0));
  EXPECT_EQ(read("1" + std::string(400, '0') + "e-800"), Value(0.0));
  for (const char* const text : {"1e999", "-1e999", "0.1e999", "-0.001e400", "1e99999999999999999999", "01", "-", "1.",
                                 ".5", "+1", "1e", "1e+", "0x1", "1_0", "NaN", "Infinity"}) {
    EXPECT_THROW(read(text), Error) << text;
  }
}

TEST(ValueJson, RefusesTextThatIsNotJson) {
  for (const char* const text : {"",
                                 " ",
                                 "nulll",
                                 "nul",
                                 "TRUE",
                                 "{}{}",
                                 "{},",
                                 "[1 2]",
                                 "[1,]",
                                 "[,1]",
                                 "[",
                                 "]",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{\"a\":1,}",
                                 "{a:1}",
                                 "{\"a\":\"b\":1}",
                                 "\"a\" \"b\"",
                                 "[\"a\"b]",
                                 "\"",
                                 "\"\\\"",
                                 "\"\\x\"",
                                 "\"\\u12\"",
                                 "\"\\ud800\"",
                                 "\"\x01\"",
                                 "\"\xff\"",
                                 "\xef\xbb\xbf{}",
                                 "'a'",
                                 "[1]x",
                                 "1 1"}) {
    EXPECT_THROW(parse_json(text, "test"), Error) << text;
  }
}

TEST(ValueJson, ALargeTextOfTinyValuesIsRefusedBeforeItsTokensAreKept) {
  std::string text(16 << 20, '[');
  try {
    parse_json(text, "test", 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.offset(), text.size() / 4);
  }
  text = "\"" + std::string(16 << 20, '[') + "\"";  // in a string they are not values
  EXPECT_NO_THROW(parse_json(text, "test", 0));
}

TEST(ValueJson, ReadsWhatItWrites) {
  const Attributes map{{"a", Value::Array{1, -2, 0.25, "\xc3\xa9", true, Value()}},
                       {"b", Attributes{{"c", Value::Array{Value::Array{}}}}}};
  for (const int indent : {-1, 0, 1, 4}) EXPECT_EQ(parse_json(to_json(map, indent), "test"), Value(map)) << indent;
}

}  // namespace
}  // namespace poise
